"""Send to Amazon's services, ten messages in one request, and see to each of them."""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esker.deliver.targets.content import NotJson, as_json, whole
from esker.deliver.targets.patience import Patience
from esker.deliver.targets.target import Message, Refused, Sender
from esker.errors import MissingPackage, TargetRefused, TargetUnavailable
from esker.project import Project
from esker.project.connections import AwsConnection
from esker.project.secrets import redact

try:
    import boto3
    from botocore.config import Config
    from botocore.credentials import DeferredRefreshableCredentials, create_assume_role_refresher
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.session import get_session
except ImportError:
    raise MissingPackage("sns and sqs", "boto3", "aws", "targets") from None

_MOST_MESSAGES = 10
_MOST_BYTES = 256 * 1024
_PLAIN_GROUP = re.compile(r"[A-Za-z0-9_-]{1,128}")
_OF_THE_MESSAGE = (
    "BatchRequestTooLong",
    "InvalidMessageContents",
    "InvalidParameter",
    "InvalidParameterValue",
    "ParameterValueInvalid",
)
_PASSING = re.compile(r"Throttl|TooManyRequests|SlowDown|InternalError|ServiceUnavailable|RequestExpired")
_ATTRIBUTES = ("op", "table", "changeset", "version")
_RIGHTS = (
    "See whether keys, profile or role of the connection are right and may send there, and whether it exists."
)


def connection_of(name: str | None, project: Project) -> AwsConnection:
    """Return the connection of that name; without one, AWS as the environment tells it."""
    connection = project.connections[name] if name is not None else AwsConnection(type="aws")
    assert isinstance(connection, AwsConnection), "the project was checked"
    return connection


def client(service: str, connection: AwsConnection, region: str | None, target: str) -> Any:
    """Return a client of a service. `region` is the target's own. Raises TargetRefused."""
    options = Config(
        connect_timeout=min(10.0, connection.timeout.total_seconds()),
        read_timeout=connection.timeout.total_seconds(),
        retries={"mode": "standard", "total_max_attempts": connection.retries + 1},
        user_agent_extra="esker",
    )
    try:
        return _session(connection, options).client(
            service,
            region_name=connection.region or region,
            endpoint_url=connection.endpoint,
            config=options,
        )
    except (BotoCoreError, ValueError) as error:
        raise TargetRefused(target, redact(str(error)), _RIGHTS) from error


def _session(connection: AwsConnection, options: Config) -> Any:
    secrets = {
        name: value.get_secret_value()
        for name, value in (
            ("aws_access_key_id", connection.access_key),
            ("aws_secret_access_key", connection.secret_key),
            ("aws_session_token", connection.session_token),
        )
        if value is not None
    }
    session = boto3.Session(profile_name=connection.profile, region_name=connection.region, **secrets)
    if connection.role is None:
        return session
    wanted = {"RoleArn": connection.role, "RoleSessionName": "esker"}
    if connection.external_id is not None:
        wanted["ExternalId"] = connection.external_id
    sts = session.client("sts", endpoint_url=connection.endpoint, config=options)
    inner = get_session()
    # Its only door for keys that are fetched anew before they run out.
    inner._credentials = DeferredRefreshableCredentials(
        create_assume_role_refresher(sts, wanted), "assume-role"
    )
    return boto3.Session(botocore_session=inner)


@dataclass(frozen=True)
class Entry:
    """A message as it is sent."""

    message: Message
    text: str
    attributes: Mapping[str, Any]
    ordered: Mapping[str, str]
    """What a FIFO topic or queue wants to know: which messages belong together, and which are the same."""


def numbered(entries: Sequence[Entry], text: str) -> list[dict[str, Any]]:
    """Return entries as services want them, which call their text differently."""
    return [
        {"Id": str(number), text: entry.text, "MessageAttributes": entry.attributes, **entry.ordered}
        for number, entry in enumerate(entries)
    ]


class AwsSender(Sender):
    """Sends to a topic or a queue. Kinds say how one request is made."""

    def __init__(self, target: str, retries: int, *, is_fifo: bool) -> None:
        self._target, self._retries, self._is_fifo = target, retries, is_fifo

    @abstractmethod
    def _request(self, entries: Sequence[Entry]) -> Mapping[str, Any]:
        """Send entries, whose ids are their numbers, and return what the service answers."""

    def send(self, messages: Sequence[Message]) -> list[Refused]:
        entries: list[Entry] = []
        refused: list[Refused] = []
        for message in messages:
            try:
                entries.append(self._entry(message))
            except NotJson as error:
                refused.append(Refused(message, str(error)))
        for lot in self._lots(entries):
            refused += self._deliver(lot)
        return refused

    def _entry(self, message: Message) -> Entry:
        content = as_json(whole(message), ascii_only=True)  # they take no control characters
        attributes = {
            name: {"DataType": kind, "StringValue": str(getattr(message, name))}
            for name, kind in zip(_ATTRIBUTES, ("String", "String", "Number", "Number"), strict=True)
        }
        ordered = {}
        if self._is_fifo:
            digest = hashlib.sha256(message.id.encode()).hexdigest()
            ordered = {
                "MessageGroupId": message.id if _PLAIN_GROUP.fullmatch(message.id) else digest,
                "MessageDeduplicationId": hashlib.sha256(content).hexdigest(),
            }
        return Entry(message, content.decode(), attributes, ordered)

    def _lots(self, entries: Sequence[Entry]) -> Iterator[list[Entry]]:
        """Yield what fits into one request.

        In a FIFO queue no row is there twice: one message could fail, and a newer one of its row not.
        """
        lot: list[Entry] = []
        size = 0
        for entry in entries:
            length = len(entry.text) + sum(
                len(n) + len(v["StringValue"]) + 6 for n, v in entry.attributes.items()
            )
            again = self._is_fifo and any(other.message.id == entry.message.id for other in lot)
            if lot and (again or len(lot) == _MOST_MESSAGES or size + length > _MOST_BYTES):
                yield lot
                lot, size = [], 0
            lot.append(entry)
            size += length
        if lot:
            yield lot

    def _deliver(self, lot: Sequence[Entry]) -> list[Refused]:
        """Send until each of some entries has arrived or is refused."""
        refused: list[Refused] = []
        patience = Patience(self._retries)
        while lot:
            try:
                answer = self._request(lot)
            except ClientError as error:
                return refused + self._explain(lot, error)
            except BotoCoreError as error:
                raise TargetUnavailable(self._target, redact(str(error)), patience.tries) from error
            again: list[Entry] = []
            why = ""
            for failed in answer.get("Failed", ()):
                entry, code = lot[int(failed["Id"])], failed.get("Code", "")
                words = redact(f"{code}: {failed.get('Message', '')}".strip(": "))
                if failed.get("SenderFault") and not _PASSING.search(code):
                    refused.append(Refused(entry.message, words))
                else:
                    again.append(entry)
                    why = words
            if len(again) < len(lot):
                patience.renew()
            lot = again
            if lot and not patience.wait():
                raise TargetUnavailable(self._target, why, patience.tries)
        return refused

    def _explain(self, lot: Sequence[Entry], error: ClientError) -> list[Refused]:
        code = str(error.response["Error"].get("Code", ""))
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        why = redact(str(error))
        if status >= 500 or _PASSING.search(code):
            raise TargetUnavailable(self._target, why, self._retries + 1) from error
        if code.rpartition(".")[2] not in _OF_THE_MESSAGE:
            raise TargetRefused(self._target, why, _RIGHTS) from error
        if len(lot) == 1:
            return [Refused(lot[0].message, why)]
        middle = len(lot) // 2
        return self._deliver(lot[:middle]) + self._deliver(lot[middle:])
