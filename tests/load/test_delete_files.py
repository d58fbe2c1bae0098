"""Files of deletes do not pile up: what every scan has to open stays few."""

from __future__ import annotations

import random
from typing import Any

import pytest

from esker.engine.iceberg import positions
from tests.load.works import WORKS, Make, Works, large_in_soak

pytestmark = pytest.mark.spark


def delete_files(works: Works) -> list[Any]:
    return works.sql(f"SELECT * FROM {WORKS}.delete_files")


def upsert(works: Works, rounds: int, seed: int = 1) -> list[int]:
    """Load batches that change three rows each; return how many delete files there were after each."""
    chance = random.Random(seed)
    expected = {row["id"]: row["title"] for row in works.rows().values()}
    counts = []
    for number in range(rounds):
        batch = dict.fromkeys(chance.sample(range(60), 3), f"{seed}-{number}")
        works.load([{"id": key, "title": title} for key, title in batch.items()])
        expected |= batch
        counts.append(len(delete_files(works)))
        if number % 6 == 5:
            assert {key: row["title"] for key, row in works.rows().items()} == expected
    return counts


@large_in_soak
def test_many_small_ones_become_one(make: Make, lane: str) -> None:
    works = make(lane=lane)
    works.load([{"id": number, "title": "a"} for number in range(60)])
    rounds = 24 if lane == "small" else 12
    counts = upsert(works, rounds)
    assert max(counts) == 10
    assert counts[10] == 1
    # What was taken in is still deleted for readers that look at old snapshots too.
    first = works.sql(f"SELECT snapshot_id FROM {WORKS}.snapshots ORDER BY committed_at")[0][0]
    assert works.sql(f"SELECT count(*) FROM {WORKS} VERSION AS OF {first}")[0][0] == 60


def test_large_ones_are_left_alone(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each commit would write all deletes of the table anew."""
    monkeypatch.setattr(positions, "_SMALL", 30)
    works = make(lane="small")
    works.load([{"id": number, "title": "a"} for number in range(60)])
    upsert(works, 36)
    sizes = sorted(row.record_count for row in delete_files(works))
    assert sum(size >= 30 for size in sizes) == 3
    assert len(sizes) < 14


def test_each_partition_for_itself(make: Make) -> None:
    works = make(lane="small", partition_by=["bucket(2, id)"])
    works.load([{"id": number, "title": "a"} for number in range(60)])
    upsert(works, 24)
    files = delete_files(works)
    assert len({str(row.partition) for row in files}) == 2
    assert len(files) <= 20


def test_deletes_of_files_that_are_gone_are_dropped(make: Make) -> None:
    """After a compaction there is nothing to delete any more; what came since counts."""
    works = make(lane="small")
    works.load([{"id": number, "title": "a"} for number in range(60)])
    upsert(works, 9)
    works.sql(
        "CALL lake.system.rewrite_data_files(table => 'shop.works', options => map('rewrite-all', 'true'))"
    )
    upsert(works, 12, seed=2)
    live = {row.file_path for row in works.sql(f"SELECT file_path FROM {WORKS}.files WHERE content = 0")}
    named = {row.file_path for row in works.sql(f"SELECT file_path FROM {WORKS}.position_deletes")}
    assert named <= live
