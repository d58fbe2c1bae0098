"""How often something is tried, and how long is waited in between."""

from __future__ import annotations

import random
import time
from datetime import timedelta

from esker.engine.web import LONGEST_WAIT

_FIRST = 0.25
_LONGEST = 30.0


class Patience:
    """Counts tries of one thing, and waits ever longer before the next."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._vain = 0
        self.tries = 1

    def wait(self, wanted: timedelta | None = None) -> bool:
        """Wait before another try, as long as the server wants if it says so; False if there is none left."""
        self._vain += 1
        if self._vain > self._retries or (wanted is not None and wanted > LONGEST_WAIT):
            return False
        longest = min(_LONGEST, _FIRST * 2 ** (self._vain - 1))
        # Many tasks are refused at the same moment, and should not come back at the same one.
        own = longest * random.uniform(0.5, 1)
        time.sleep(max(own, wanted.total_seconds() if wanted is not None else 0.0))
        self.tries += 1
        return True

    def renew(self) -> None:
        """Begin to count anew: something has arrived."""
        self._vain = 0
