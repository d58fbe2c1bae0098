"""Ask web servers: what may pass is asked for again, ever later and not for ever."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from esker.errors import MissingPackage, SourceRefused, SourceUnavailable
from esker.project.secrets import redact

try:
    import httpx2
    import stamina
except ImportError:
    raise MissingPackage("http and oai_pmh", "httpx2", "http") from None

# Failures are told where they end a window or a run; without this, each retry would be printed.
logging.getLogger("stamina").addHandler(logging.NullHandler())

_Parsed = TypeVar("_Parsed")
_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Statuses that may be others a moment later."""
_LONGEST_WAIT = timedelta(minutes=5)
"""Beyond this, a server that asks to be left alone is left alone until the next run."""
_SHOWN = 200


class Malformed(Exception):
    """An answer that is not what it should be: cut off, empty, or of another kind."""


class Client:
    """Asks one server. Each question is repeated while its failure may pass."""

    def __init__(self, timeout: timedelta, retries: int, *, auth: tuple[str, str] | None = None) -> None:
        self._retries = retries
        self._http = httpx2.Client(timeout=timeout.total_seconds(), auth=auth, follow_redirects=True)

    def get(self, url: str, query: Mapping[str, str], parse: Callable[[httpx2.Response], _Parsed]) -> _Parsed:
        """Return what `parse` makes of an answer. It raises Malformed for one that is cut off or empty.

        Raises SourceUnavailable when it was in vain, SourceRefused when asking again would be.
        """
        attempts = 0
        shown = redact(str(httpx2.URL(url, params=dict(query))))
        try:
            for attempt in stamina.retry_context(
                on=_wait, attempts=self._retries + 1, timeout=None, wait_initial=0.5, wait_max=30.0
            ):
                with attempt:
                    attempts += 1
                    return parse(self._ask(url, query))
        except httpx2.HTTPStatusError as error:
            status = error.response.status_code
            told = f"It answers {status} {error.response.reason_phrase}."
            if status in _PASSING:
                raise SourceUnavailable(shown, told, attempts) from error
            body = error.response.text[:_SHOWN].strip()
            raise SourceRefused(shown, redact(f"{told} {body}".strip())) from error
        except (httpx2.TransportError, Malformed) as error:
            why = redact(str(error)) or type(error).__name__
            raise SourceUnavailable(shown, why, attempts) from error
        raise AssertionError  # the last attempt returns or raises

    def _ask(self, url: str, query: Mapping[str, str]) -> httpx2.Response:
        answer = self._http.get(url, params=dict(query))
        answer.raise_for_status()
        return answer

    def close(self) -> None:
        self._http.close()


def _wait(error: Exception) -> bool | timedelta:
    """Tell whether to ask again, or how long the server wants to be left alone before."""
    if isinstance(error, httpx2.TransportError | Malformed):
        return True
    if not isinstance(error, httpx2.HTTPStatusError) or error.response.status_code not in _PASSING:
        return False
    wanted = _retry_after(error.response.headers.get("Retry-After"), datetime.now(UTC))
    if wanted is None:
        return True
    return wanted if wanted <= _LONGEST_WAIT else False


def _retry_after(text: str | None, now: datetime) -> timedelta | None:
    """Read seconds, or a date."""
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment: Any = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = (moment - now).total_seconds() if moment.tzinfo else 0.0
    return timedelta(seconds=max(0.0, seconds))
