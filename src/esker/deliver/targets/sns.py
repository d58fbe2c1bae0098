"""A topic of Amazon's notification service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esker.deliver.targets.aws import AwsSender, Entry, client, connection_of, numbered
from esker.deliver.targets.target import Sender, Target
from esker.project import Project
from esker.project.connections import AwsConnection
from esker.project.secrets import remember_secrets_of
from esker.project.targets import SnsTarget


@dataclass(frozen=True)
class SnsTopic(Target):
    """A topic."""

    declared: SnsTarget
    connection: AwsConnection

    @classmethod
    def of(cls, declared: SnsTarget, project: Project) -> SnsTopic:
        return cls(declared, connection_of(declared.connection, project))

    def open(self) -> Sender:
        remember_secrets_of(self.connection)
        region = self.declared.topic.split(":")[3]
        return _SnsSender(self, client("sns", self.connection, region, self.describe()))

    def describe(self) -> str:
        return f"topic {self.declared.topic}"


class _SnsSender(AwsSender):
    def __init__(self, target: SnsTopic, sns: Any) -> None:
        self._topic, self._sns = target.declared.topic, sns
        super().__init__(target.describe(), target.connection.retries, is_fifo=self._topic.endswith(".fifo"))

    def close(self) -> None:
        self._sns.close()

    def _request(self, entries: Sequence[Entry]) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self._sns.publish_batch(
            TopicArn=self._topic,
            PublishBatchRequestEntries=numbered(entries, "Message"),
        )
        return answer
