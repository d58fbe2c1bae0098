"""Files of deletes do not pile up: what every scan has to open stays few."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from esker.engine.iceberg import positions
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.table import TableId
from esker.ledger import upkeep
from esker.ledger.delete_memory import longest_late
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


@pytest.mark.parametrize("rounds", [14, pytest.param(200, marks=pytest.mark.soak)])
def test_the_memory_of_deletes_stays_few_files(
    make: Make, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """Runs put it together, forget what is older than `late`, and it still knows every other delete."""
    if rounds < 20:
        monkeypatch.setattr(upkeep, "MANY_FILES", 5)
        monkeypatch.setattr(upkeep, "_KEPT_SNAPSHOTS", 3)
    monkeypatch.setattr(upkeep, "KEPT_FOR", timedelta())
    works = make(lane="small", order_by="at", deletes="hard", late="1h")
    works.load([{"id": number, "at": 5, "title": "a"} for number in range(rounds)])
    works.load([{"id": 0, "at": 7, "deleted": True}])
    works.sql(f"INSERT INTO {WORKS}__deletes SELECT 1, 9, 0, TIMESTAMP '2020-01-01 00:00:00'")
    files, snapshots = [], []
    for number in range(1, rounds):
        works.load([{"id": number, "at": 7, "deleted": True}])
        files.append(works.sql(f"SELECT count(*) FROM {WORKS}__deletes.files")[0][0])
        snapshots.append(works.sql(f"SELECT count(*) FROM {WORKS}__deletes.snapshots")[0][0])
    assert max(files) <= upkeep.MANY_FILES
    assert max(snapshots) <= upkeep.MANY_FILES + upkeep._KEPT_SNAPSHOTS + 2
    remembered = works.sql(f"SELECT id, _esker_order FROM {WORKS}__deletes ORDER BY id")
    assert [tuple(row) for row in remembered] == [(number, 7) for number in range(rounds)]
    # As in another process, which knows no more than the tables say.
    monkeypatch.setattr("esker.ledger.logged._reached", {})
    late = works.load([{"id": number, "at": 6, "title": "late"} for number in range(rounds)])
    assert (late.rows.stale, late.batches) == (rounds, 0)
    assert works.load([{"id": 1, "at": 8, "title": "again"}]).rows.inserted == 1
    assert [each for each in works.project.fsck().tables if each.findings] == []


def asked(works: Works) -> timedelta:
    """Return how long the memory of deletes says that it is needed."""
    memory = Attempt(works.project.engine, TableId("lake", "shop.works__deletes"))
    return longest_late(memory.properties)


def test_the_memory_of_deletes_is_kept_as_long_as_anybody_asked(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a project file that no longer says so, or that is not this one."""
    monkeypatch.setattr(upkeep, "MANY_FILES", 3)
    works = make(lane="small", order_by="at", deletes="hard", late="90d")
    works.load([{"id": number, "at": 5, "title": "a"} for number in range(6)])
    works.load([{"id": 0, "at": 7, "deleted": True}])
    month = "current_timestamp() - INTERVAL 30 DAYS"
    works.sql(f"INSERT INTO {WORKS}__deletes SELECT 9, 9, 0, {month}")
    works.change(late="1d")
    for number in (1, 2, 3):
        works.load([{"id": number, "at": 7, "deleted": True}])
    assert works.sql(f"SELECT count(*) FROM {WORKS}__deletes.files")[0][0] < 5, "it was put together"
    works.change(late="60d")
    late = works.load([{"id": 9, "at": 8, "title": "late"}])
    assert (late.rows.stale, late.rows.inserted) == (1, 0)
    assert asked(works) == timedelta(days=90)
    # Who only reads it asks, too.
    works.change(late="120d")
    works.load([{"id": 4, "at": 6, "title": "b"}])
    assert asked(works) == timedelta(days=120)
