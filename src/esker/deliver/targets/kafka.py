"""A topic of Kafka. Changes of a row have the same key, and so one partition: they stay in their order."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from esker.deliver.targets.content import NotJson, as_json, described
from esker.deliver.targets.target import Message, Refused, Sender, Target
from esker.errors import MissingPackage, TargetRefused, TargetUnavailable
from esker.project import Project
from esker.project.connections import KafkaConnection
from esker.project.secrets import redact, remember_secrets_of
from esker.project.targets import KafkaTarget

try:
    from confluent_kafka import KafkaError, KafkaException, Producer
except ImportError:
    raise MissingPackage("kafka", "confluent-kafka", "kafka", "targets") from None

# librdkafka tells each lost connection; what matters becomes an error here.
_log = logging.getLogger("esker.kafka")
_log.addHandler(logging.NullHandler())
_log.propagate = False

_OF_THE_MESSAGE = (KafkaError.INVALID_RECORD, KafkaError.INVALID_TIMESTAMP)
_HEADERS = ("op", "table", "changeset", "version")
_TOO_LARGE = "it is larger than the topic takes (max.message.bytes)"
_RIGHTS = (
    "See whether user and password of the connection are right, and whether they may write to the topic."
)
_REFUSALS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.SASL_AUTHENTICATION_FAILED: _RIGHTS,
    KafkaError._AUTHENTICATION: _RIGHTS,
    KafkaError.UNKNOWN_TOPIC_OR_PART: "Make the topic, or correct topic: of the target.",
    KafkaError._UNKNOWN_TOPIC: "Make the topic, or correct topic: of the target.",
    KafkaError._UNKNOWN_PARTITION: "Make the topic, or correct topic: of the target.",
}
"""What every message would meet, and what to do."""
_GRACE = 5.0
"""Seconds that a message's own time may be over before it is said to have failed."""
_LONGEST_TO_CONNECT = 30.0


@dataclass(frozen=True)
class KafkaTopic(Target):
    """A topic."""

    declared: KafkaTarget
    connection: KafkaConnection
    ca_file: str | None

    @classmethod
    def of(cls, declared: KafkaTarget, project: Project) -> KafkaTopic:
        connection = project.connections[declared.connection]
        assert isinstance(connection, KafkaConnection), "the project was checked"
        ca_file = str(project.path(connection.ca_file)) if connection.ca_file is not None else None
        return cls(declared, connection, ca_file)

    def open(self) -> Sender:
        remember_secrets_of(self.connection)
        return _KafkaSender(self, self._settings())

    def describe(self) -> str:
        return f'topic "{self.declared.topic}" of {self.connection.servers[0]}'

    def _settings(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            # As Java's own clients choose it: whoever writes to the topic too finds the same partition.
            "partitioner": "murmur2_random",
            "compression.type": "lz4",
            "linger.ms": 5,
            **self.connection.properties,
            **{name: each.get_secret_value() for name, each in self.connection.secret_properties.items()},
            "bootstrap.servers": ",".join(self.connection.servers),
            "acks": "all",
            "enable.idempotence": True,
            "allow.auto.create.topics": False,
            "message.timeout.ms": int(self.connection.timeout.total_seconds() * 1000),
            "security.protocol": self._protocol(),
            "logger": _log,
        }
        if self.connection.user is not None and self.connection.password is not None:
            found |= {
                "sasl.mechanism": self.connection.mechanism,
                "sasl.username": self.connection.user,
                "sasl.password": self.connection.password.get_secret_value(),
            }
        if self.ca_file is not None:
            found["ssl.ca.location"] = self.ca_file
        return found

    def _protocol(self) -> str:
        if self.connection.user is None:
            return "SSL" if self.connection.tls else "PLAINTEXT"
        return "SASL_SSL" if self.connection.tls else "SASL_PLAINTEXT"


@dataclass
class _Sent:
    """What became of messages."""

    refused: list[Refused] = field(default_factory=list)
    oversized: list[Message] = field(default_factory=list)
    """Too large, alone or with those that travelled along."""
    failures: list[KafkaError] = field(default_factory=list)

    def note(self, message: Message, error: KafkaError | None) -> None:
        if error is None:
            return
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            self.oversized.append(message)
        elif error.code() in _OF_THE_MESSAGE:
            self.refused.append(Refused(message, redact(error.str())))
        else:
            self.failures.append(error)


class _KafkaSender(Sender):
    def __init__(self, target: KafkaTopic, settings: dict[str, Any]) -> None:
        self._target = target
        self._seconds = target.connection.timeout.total_seconds()
        self._last: KafkaError | None = None
        """What the client last told of brokers: why a request gets no answer."""
        try:
            self._producer = Producer({**settings, "error_cb": self._note})
        except KafkaException as error:
            raise TargetRefused(target.describe(), redact(str(error.args[0]))) from error
        self._find_topic()

    def send(self, messages: Sequence[Message]) -> list[Refused]:
        sent = self._send(messages)
        if not sent.oversized:
            return sent.refused
        # Brokers measure what travels together. All changes of the rows concerned go once more, each alone,
        # so that the newest is the last again.
        rows = {message.id for message in sent.oversized}
        for message in messages:
            if message.id in rows and not any(each.message is message for each in sent.refused):
                alone = self._send([message])
                sent.refused.extend(alone.refused)
                sent.refused.extend(Refused(each, _TOO_LARGE) for each in alone.oversized)
        return sent.refused

    def _send(self, messages: Sequence[Message]) -> _Sent:
        sent, self._last = _Sent(), None
        for message in messages:
            try:
                self._produce(message, self._value(message), sent)
            except NotJson as error:
                sent.refused.append(Refused(message, str(error)))
        waiting = self._producer.flush(self._seconds + _GRACE)
        if waiting or sent.failures:
            self._producer.purge()
            raise self._error(sent.failures[0] if sent.failures else self._last)
        return sent

    def close(self) -> None:
        self._producer.purge()

    def _produce(self, message: Message, value: bytes | None, sent: _Sent) -> None:
        headers: list[tuple[str, str | bytes | None]] = [
            (name, str(getattr(message, name)).encode()) for name in _HEADERS
        ]
        deadline = time.monotonic() + self._seconds + _GRACE
        while not sent.failures:
            try:
                self._producer.produce(
                    self._target.declared.topic,
                    value,
                    message.id.encode(),
                    headers=headers,
                    on_delivery=lambda error, _: sent.note(message, error),
                )
            except BufferError:  # its queue is full
                self._producer.poll(0.1)
                if time.monotonic() > deadline:
                    raise self._error(self._last) from None
            except KafkaException as error:
                found = error.args[0]
                if found.code() == KafkaError.MSG_SIZE_TOO_LARGE:  # the client itself measures each alone
                    sent.refused.append(Refused(message, _TOO_LARGE))
                else:
                    sent.note(message, found)
                return
            else:
                self._producer.poll(0)
                return

    def _value(self, message: Message) -> bytes | None:
        if message.op == "delete" and self._target.declared.deletes == "tombstone":
            return None
        return as_json(described(message) if message.body is None else message.body)

    def _find_topic(self) -> None:
        """Connect: the client itself waits for the first message, and then for long."""
        topic = self._target.declared.topic
        try:
            found = self._producer.list_topics(topic, min(self._seconds, _LONGEST_TO_CONNECT))
        except KafkaException as error:
            self._producer.poll(0.1)  # what it knows of the brokers is told here
            raise self._error(self._last or error.args[0]) from error
        if (problem := found.topics[topic].error) is not None:
            raise self._error(problem)

    def _note(self, error: KafkaError) -> None:
        # That no broker is left is told last, and why is told before.
        if self._last is None or self._last.code() not in _REFUSALS:
            self._last = error

    def _error(self, error: KafkaError | None) -> TargetRefused | TargetUnavailable:
        place = self._target.describe()
        if error is None:
            return TargetUnavailable(place, "It does not answer.", 1)
        why = redact(error.str())
        remedy = _REFUSALS.get(error.code())
        return TargetRefused(place, why, remedy) if remedy else TargetUnavailable(place, why, 1)
