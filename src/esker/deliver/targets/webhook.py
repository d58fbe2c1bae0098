"""Tell a web server of changes, by POST."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from esker.deliver.targets.content import NotJson, as_json, whole
from esker.deliver.targets.target import Message, Refused, Sender, Target
from esker.deliver.targets.web import Web, told
from esker.errors import SourceRefused, TargetRefused, TargetUnavailable
from esker.project import Project
from esker.project.connections import WebhookConnection
from esker.project.secrets import redact, remember_secret, remember_secrets_of
from esker.project.targets import WebhookTarget
from esker.sources.http.auth import credentials
from esker.sources.web import Malformed

_NOT_THE_MESSAGE = {
    401: "See whether auth: or secret_headers: of the connection are what the server wants.",
    403: "See whether whoever the connection's credentials belong to may send there.",
    404: "See whether url: of the connection is right.",
    405: "See whether url: of the connection is right: it takes no POST.",
    407: "See what the proxy wants.",
    410: "The server has given up this address: ask for another url:.",
}
"""Statuses that every message would get, and what to do."""
_LIKELY_SECRET = 16
"""Characters of a part of an address that is no plain word."""


@dataclass(frozen=True)
class Webhook(Target):
    """An address that takes JSON."""

    declared: WebhookTarget
    connection: WebhookConnection

    @classmethod
    def of(cls, declared: WebhookTarget, project: Project) -> Webhook:
        connection = project.connections[declared.connection]
        assert isinstance(connection, WebhookConnection), "the project was checked"
        return cls(declared, connection)

    def open(self) -> Sender:
        remember_secrets_of(self.connection)
        for part in re.split(r"[/?&=]", self.connection.url.partition("://")[2])[1:]:
            if len(part) >= _LIKELY_SECRET:
                remember_secret(part)  # servers quote what they do not know
        headers = dict(self.connection.headers) | {
            name: value.get_secret_value() for name, value in self.connection.secret_headers.items()
        }
        web = Web(
            self.describe(),
            [self.connection.url],
            self.connection.timeout,
            self.connection.retries,
            auth=credentials(self.connection.auth),
            headers=headers,
        )
        return _WebhookSender(self, web)

    def describe(self) -> str:
        # Many webhooks have a key in their path: who knows the address may write.
        parts = urlsplit(self.connection.url)
        port = f":{parts.port}" if parts.port else ""
        return f"webhook at {parts.scheme}://{parts.hostname}{port}"


class _WebhookSender(Sender):
    def __init__(self, target: Webhook, web: Web) -> None:
        self._target, self._web = target, web

    def send(self, messages: Sequence[Message]) -> list[Refused]:
        refused: list[Refused] = []
        size = self._target.declared.batch_size
        for start in range(0, len(messages), size):
            refused += self._post(messages[start : start + size])
        return refused

    def close(self) -> None:
        self._web.close()

    def _post(self, messages: Sequence[Message]) -> list[Refused]:
        try:
            contents = [whole(message) for message in messages]
            body = as_json(contents[0] if self._target.declared.batch_size == 1 else contents)
        except NotJson as error:
            return self._in_halves(messages, str(error))
        try:
            answer = self._web.ask("POST", "", body, self._headers(body))
        except SourceRefused as error:  # what gives tokens does
            raise TargetRefused(self._target.describe(), error.reason, error.remedy) from error
        except Malformed as error:
            raise TargetUnavailable(self._target.describe(), redact(str(error)), 1) from error
        if answer.is_success:
            return []
        if answer.status_code in _NOT_THE_MESSAGE:
            raise TargetRefused(self._target.describe(), told(answer), _NOT_THE_MESSAGE[answer.status_code])
        if answer.status_code < 400:
            raise TargetRefused(self._target.describe(), told(answer), "Write where it leads to as url:.")
        return self._in_halves(messages, told(answer))

    def _in_halves(self, messages: Sequence[Message], why: str) -> list[Refused]:
        """Find out which of some messages is refused: the others shall arrive."""
        if len(messages) == 1:
            return [Refused(messages[0], why)]
        middle = len(messages) // 2
        return self._post(messages[:middle]) + self._post(messages[middle:])

    def _headers(self, body: bytes) -> dict[str, str]:
        # The same changes have the same key: a server that knows it need do nothing.
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": hashlib.sha256(body).hexdigest(),
        }
        if (signature := self._target.connection.signature) is not None:
            secret = signature.secret.get_secret_value().encode()
            headers[signature.header] = f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"
        return headers
