"""What was met before."""

from __future__ import annotations

import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from esker.errors import DiskFull
from esker.sources.http.seen import Seen


def test_each_text_once_in_little_memory() -> None:
    """A set of these would take ten times as much."""
    tracemalloc.start()
    try:
        with closing(Seen()) as seen:
            for _ in range(2):
                found = sum(seen.add(f"/works/{number}/items {{}}") for number in range(20_000))
            assert found == 0
            assert seen.add("another")
            assert seen.add("\udce4 broken")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_full_disk(tmp_path: Path) -> None:
    """It is told as such. The file is below the folder that was given, and nobody has to remove it."""
    with closing(Seen(tmp_path)) as seen:
        [(_, _, file)] = seen._kept.execute("PRAGMA database_list").fetchall()
        assert Path(file).parent == tmp_path
        seen._kept.execute("PRAGMA max_page_count = 4")
        with pytest.raises(DiskFull):
            all(seen.add(str(number)) for number in range(10_000))
        assert not list(tmp_path.iterdir())
