"""A queue of Amazon's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esker.deliver.targets.aws import AwsSender, Entry, client, connection_of, numbered
from esker.deliver.targets.target import Sender, Target
from esker.project import Project
from esker.project.connections import AwsConnection
from esker.project.secrets import remember_secrets_of
from esker.project.targets import SqsTarget

_REGION = re.compile(r"https://(?:sqs\.([a-z0-9-]+)|([a-z0-9-]+)\.queue)\.amazonaws\.com")


@dataclass(frozen=True)
class SqsQueue(Target):
    """A queue."""

    declared: SqsTarget
    connection: AwsConnection

    @classmethod
    def of(cls, declared: SqsTarget, project: Project) -> SqsQueue:
        return cls(declared, connection_of(declared.connection, project))

    def open(self) -> Sender:
        remember_secrets_of(self.connection)
        found = _REGION.match(self.declared.queue)
        region = (found[1] or found[2]) if found else None
        return _SqsSender(self, client("sqs", self.connection, region, self.describe()))

    def describe(self) -> str:
        return f"queue {self.declared.queue}"


class _SqsSender(AwsSender):
    def __init__(self, target: SqsQueue, sqs: Any) -> None:
        self._queue, self._sqs = target.declared.queue, sqs
        super().__init__(target.describe(), target.connection.retries, is_fifo=self._queue.endswith(".fifo"))

    def close(self) -> None:
        self._sqs.close()

    def _request(self, entries: Sequence[Entry]) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self._sqs.send_message_batch(
            QueueUrl=self._queue,
            Entries=numbered(entries, "MessageBody"),
        )
        return answer
