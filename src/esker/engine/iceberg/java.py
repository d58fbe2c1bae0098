"""Java collections as Python values.

Py4J's own iteration ends with a Java exception, which PySpark then examines class by class: 45 ms for
every loop. Asking `hasNext` costs a fraction of a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def each(iterable: Any) -> Iterator[Any]:
    """Yield the items of a Java iterable."""
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()


def text_map(mapping: Any) -> dict[str, str]:
    """Return a Java map of texts."""
    return {entry.getKey(): entry.getValue() for entry in each(mapping.entrySet())}
