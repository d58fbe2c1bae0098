"""Send to web servers: what may pass is sent again, ever later and not for ever."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from datetime import timedelta

from esker.deliver.targets.patience import Patience
from esker.engine.web import PASSING, retry_after
from esker.errors import MissingPackage, TargetRefused, TargetUnavailable
from esker.project.secrets import redact

try:
    import httpx2
except ImportError:
    raise MissingPackage("elasticsearch, opensearch and webhook", "httpx2", "search", "targets") from None

_SHOWN = 400

Answer = httpx2.Response


class Web:
    """Asks the servers of one target, the next one when one is silent. `target` is its name in errors."""

    def __init__(
        self,
        target: str,
        hosts: Sequence[str],
        timeout: timedelta,
        retries: int,
        *,
        auth: httpx2.Auth | tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
    ) -> None:
        self._target, self._hosts, self._retries = target, list(hosts), retries
        try:
            trusted = ssl.create_default_context(cafile=ca_file) if ca_file is not None else True
        except OSError as error:
            raise TargetRefused(target, f"{ca_file} cannot be used: {error}.") from error
        # A redirect would take what is sent, and perhaps a key, to a server that nobody named.
        self._http = httpx2.Client(
            timeout=timeout.total_seconds(),
            auth=auth,
            headers=dict(headers or {}),
            verify=trusted,
            follow_redirects=False,
        )

    def ask(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Return an answer that will be no other when it is asked again. Raises TargetUnavailable."""
        patience = Patience(self._retries)
        while True:
            try:
                answer = self._http.request(
                    method, self._hosts[0] + path, content=content, headers=dict(headers or {})
                )
            except httpx2.HTTPError as error:  # also of a server that gives tokens
                why, wanted = redact(str(error)) or type(error).__name__, None
                self._hosts.append(self._hosts.pop(0))
            else:
                if answer.status_code not in PASSING:
                    return answer
                why, wanted = told(answer), retry_after(answer.headers)
            if not patience.wait(wanted):
                raise TargetUnavailable(self._target, why, patience.tries)

    def close(self) -> None:
        self._http.close()


def told(answer: Answer) -> str:
    """Return what a server answers, for people."""
    body = answer.text[:_SHOWN].strip()
    return redact(f"It answers {answer.status_code} {answer.reason_phrase}. {body}".strip())
