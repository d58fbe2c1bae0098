"""Clean-ups: what one says when it fails never hides why it was needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def cleaning_up(clean: Callable[[], object]) -> Iterator[None]:
    """Call `clean` after the block. Its error is raised only where the block itself raised none."""
    try:
        yield
    except BaseException:
        with suppress(Exception):
            clean()
        raise
    clean()
