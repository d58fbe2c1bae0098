"""How often a swap is tried again, and after which pauses."""

from __future__ import annotations

from collections.abc import Iterator
from time import sleep

LONGEST_PAUSE = 2.0
_FIRST_PAUSE = 0.04


def rounds(tries: int) -> Iterator[bool]:
    """Yield True for each try, and False for a last look whether the try before it landed.

    Before each round but the first lies a pause that doubles, up to LONGEST_PAUSE: whoever collides
    comes back later than whoever does not.
    """
    pause = _FIRST_PAUSE
    for number in range(tries + 1):
        if number:
            sleep(min(pause, LONGEST_PAUSE))
            pause *= 2
        yield number < tries
