"""The old store as a source: what changed in it, in the order in which it did."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))  # what it needs stands beside it

from versioned_store import VersionedStore

import esker


@esker.source
def records(
    since: int | None, endpoint: str, bucket: str, index: str, overlap: int = 60, readers: int = 8
) -> Iterator[Any]:
    """Records that changed since the last run, and in the `overlap` seconds before.

    The index by time lags behind the table that it belongs to: an entry may appear in it late. What comes
    again is compared, and changes nothing.
    """
    store = VersionedStore.connect(endpoint, bucket, index)
    try:
        with ThreadPoolExecutor(readers) as pool:
            for page in store.changed(max(0, (since or 0) - 1000 * overlap)):
                # A page at a time: objects of more than that are never in memory.
                yield list(pool.map(store.read, page))
                # Others may have changed in the same moment: the next run asks for it again.
                yield esker.reached(page[-1].changed)
    finally:
        store.close()
