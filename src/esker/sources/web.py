"""Ask web servers: what may pass is asked for again, ever later and not for ever."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from esker.engine.web import LONGEST_WAIT, PASSING, date_of, retry_after
from esker.errors import MissingPackage, PagesAstray, SourceRefused, SourceUnavailable
from esker.project.secrets import redact

try:
    import httpx2
    import stamina
except ImportError:
    raise MissingPackage("http and oai_pmh", "httpx2", "http") from None

# Failures are told where they end a window or a run; without this, each retry would be printed.
logging.getLogger("stamina").addHandler(logging.NullHandler())

_Parsed = TypeVar("_Parsed")
_CREDENTIALS = (
    "See whether the source's credentials (auth:, or user: and password:) are those that the server wants, "
    "and whether they have run out."
)
_REMEDIES = {
    401: _CREDENTIALS,
    403: "See whether whoever the source's credentials belong to may read this.",
    404: "See whether url: and path: are right. If that is how the server says that there is nothing: "
    "empty_status: 404",
}
_SHOWN = 200


class Malformed(Exception):
    """An answer that is not what it should be: cut off, empty, or of another kind.

    `remedy` says what to do if it is so each time.
    """

    def __init__(self, why: str, remedy: str | None = None) -> None:
        super().__init__(why)
        self.remedy = remedy


class _Pace:
    """Lets requests of all threads pass: not too fast, and none while the server wants to rest."""

    def __init__(self, per_second: float | None) -> None:
        self._gap = 1 / per_second if per_second else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait for one's turn."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + self._gap
        if turn > now:
            time.sleep(turn - now)

    def rest(self, wanted: timedelta) -> None:
        """Let nobody pass for a while."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + wanted.total_seconds())


class Client:
    """Asks one server. Each question is repeated while its failure may pass.

    With `may_leave=False` it goes nowhere else, whatever the server says: headers with a key would go along.
    """

    def __init__(
        self,
        timeout: timedelta,
        retries: int,
        *,
        auth: tuple[str, str] | httpx2.Auth | None = None,
        headers: Mapping[str, str] | None = None,
        per_second: float | None = None,
        may_leave: bool = True,
    ) -> None:
        self._retries = retries
        self._pace = _Pace(per_second)
        self._told: tuple[datetime, float] | None = None
        self._http = httpx2.Client(
            timeout=timeout.total_seconds(),
            auth=auth,
            headers=dict(headers or {}),
            follow_redirects=True,
            event_hooks={"response": [] if may_leave else [_stay]},
        )

    def get(self, url: str, query: Mapping[str, str], parse: Callable[[httpx2.Response], _Parsed]) -> _Parsed:
        """Return what `parse` makes of an answer. It raises Malformed for one that is cut off or empty.

        Raises SourceUnavailable when it was in vain, SourceRefused when asking again would be.
        """
        attempts = 0
        shown = redact(address(url, query))
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
            if status in PASSING:
                raise SourceUnavailable(shown, told, attempts) from error
            body = error.response.text[:_SHOWN].strip()
            remedy = _REMEDIES.get(status, "Correct the source in the project file.")
            raise SourceRefused(shown, redact(f"{told} {body}".strip()), remedy, status=status) from error
        except (httpx2.RequestError, Malformed) as error:
            why = redact(str(error)) or type(error).__name__
            if isinstance(error, Malformed) and error.remedy is not None:
                raise SourceUnavailable(shown, why, attempts, error.remedy) from error
            raise SourceUnavailable(shown, why, attempts) from error
        raise AssertionError  # the last attempt returns or raises

    def _ask(self, url: str, query: Mapping[str, str]) -> httpx2.Response:
        self._pace.wait()
        # Parameters that an address holds itself stay.
        answer = self._http.get(httpx2.URL(url).copy_merge_params(dict(query)) if query else url)
        if answer.status_code in PASSING:
            wanted = retry_after(answer.headers)
            if wanted is not None and wanted <= LONGEST_WAIT:
                self._pace.rest(wanted)
        answer.raise_for_status()
        if (moment := date_of(answer.headers)) is not None:
            self._told = moment, time.monotonic()
        return answer

    def clock(self) -> datetime | None:
        """Return the time by the server's clock, going on from its last answer; None before there is one.

        This machine's own may jump meanwhile.
        """
        if self._told is None:
            return None
        moment, at = self._told
        return moment + timedelta(seconds=time.monotonic() - at)

    def close(self) -> None:
        self._http.close()


def address(url: str, query: Mapping[str, str]) -> str:
    """Return an address with its parameters."""
    return str(httpx2.URL(url).copy_merge_params(dict(query)) if query else httpx2.URL(url))


def is_same_server(one: str | httpx2.URL, other: str | httpx2.URL) -> bool:
    """Tell whether an address is on the server of another, or on the same one and safer.

    Raises ValueError for an address that is none.
    """
    try:
        before, after = httpx2.URL(one), httpx2.URL(other)
    except httpx2.InvalidURL as error:
        raise ValueError(str(error)) from error
    if before.host != after.host:
        return False
    is_safer = (before.scheme, before.port, after.scheme, after.port) == ("http", None, "https", None)
    return is_safer or (before.scheme, before.port) == (after.scheme, after.port)


def _stay(answer: httpx2.Response) -> None:
    if answer.has_redirect_location:
        try:
            target = answer.url.join(answer.headers["Location"])
        except httpx2.InvalidURL as error:
            raise Malformed("It leads to an address that is none.") from error
        if not is_same_server(answer.url, target):
            raise PagesAstray(
                redact(str(answer.url)), f'It leads to another server, "{redact(str(target))}".'
            )


def _wait(error: Exception) -> bool | timedelta:
    """Tell whether to ask again, or how long the server wants to be left alone before."""
    if isinstance(error, httpx2.TransportError | httpx2.DecodingError | Malformed):
        return True
    if not isinstance(error, httpx2.HTTPStatusError) or error.response.status_code not in PASSING:
        return False
    wanted = retry_after(error.response.headers)
    if wanted is None:
        return True
    return wanted if wanted <= LONGEST_WAIT else False
