"""What opens a table's files, and how it stays valid: catalogs hand out keys that expire. Needs no Java."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from esker.engine.store import Store
from esker.project.secrets import remember_passing_secret

_LONGEST_MARGIN = 300.0
_MARGIN = 0.2
"""Keys are renewed when this part of their life is left, at most `_LONGEST_MARGIN` seconds."""
_PAUSE = 10.0
"""Seconds before a catalog is asked again that could not answer, or had nothing newer."""
_EXPIRES = ("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at")
_EXPIRES_BY_ACCOUNT = "adls.sas-token-expires-at-ms."
"""Properties by which catalogs say when keys expire, in milliseconds since 1970."""
_SECRET = re.compile(
    r"secret-access-key$|session-token$|oauth2\.token$|sas-token\.|connection-string\.|account\.key"
    r"|(^|\.)(token|credential|password)$"
)
"""Properties that are secrets, also those that a catalog hands out."""


@dataclass(frozen=True)
class Access:
    """Iceberg's client of a table's files, by its class, with the properties that it has."""

    client: str
    properties: Mapping[str, str] = field(repr=False)

    def __post_init__(self) -> None:
        for name, value in self.properties.items():
            if _SECRET.search(name):
                remember_passing_secret(value)

    @cached_property
    def store(self) -> Store:
        """The store as this process opens it."""
        return Store.of(self.properties)

    @cached_property
    def expires(self) -> float | None:
        """When the keys expire, in seconds since 1970; None where the catalog does not say."""
        moments = [
            int(value) / 1000
            for name, value in self.properties.items()
            if (name in _EXPIRES or name.startswith(_EXPIRES_BY_ACCOUNT)) and value.isdecimal()
        ]
        return min(moments, default=None)


class CurrentAccess:
    """The access to one table's files. The catalog is asked again before keys expire. Any thread may ask."""

    def __init__(
        self,
        first: Access,
        ask: Callable[[], Access] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`ask` asks the catalog; None where the project itself has the keys."""
        self._current, self._ask, self._clock = first, ask, clock
        self._lock = threading.Lock()
        self._received = clock()
        self._not_before = 0.0

    def get(self) -> Access:
        """Return an access that is valid now, as far as anybody knows."""
        if self._ask is not None and self._is_ending:
            with self._lock:
                if self._is_ending and self._clock() >= self._not_before:
                    # While the keys still work, a catalog that is down for a moment stops nothing.
                    with suppress(Exception):
                        self._renew(self._ask)
        return self._current

    def after_refusal(self, refused: Access) -> Access | None:
        """Return another access than one that a store refused; None when the catalog has no other."""
        if self._ask is None:
            return None
        with self._lock:
            if self._current is refused and self._clock() >= self._not_before:
                with suppress(Exception):  # people hear of the refusal itself
                    self._renew(self._ask)
        return self._current if self._current.properties != refused.properties else None

    @property
    def _is_ending(self) -> bool:
        return is_ending(self._current.expires, self._received, self._clock())

    def _renew(self, ask: Callable[[], Access]) -> None:
        self._not_before = self._clock() + _PAUSE
        self._current = ask()
        self._received = self._clock()


def is_ending(expires: float | None, received: float, now: float) -> bool:
    """Tell whether keys that were received at a moment should be renewed."""
    if expires is None:
        return False
    return now >= expires - min(_LONGEST_MARGIN, max(expires - received, 0.0) * _MARGIN)
