"""Mode scd2: every version of a row stays, with the time in which it was valid."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from esker.errors import NoMoment, ReservedName
from esker.ledger.change_log import CHANGESET, OP, ORDER
from tests.folder import Folder
from tests.load.works import QUARANTINE, Make, Works, large_in_soak

pytestmark = pytest.mark.spark

Version = tuple[int, int | None, str]


@pytest.fixture
def make(make: Make) -> Make:
    return lambda **keys: make(mode="scd2", **keys)


def row(number: Any, at: Any, title: str | None) -> dict[str, Any]:
    """A version; without a title a delete."""
    return {"id": number, "at": at, "title": title or "gone", "deleted": title is None}


def history(works: Works) -> dict[int, list[Version]]:
    """Return the versions of each key, after a look at whether they fit together."""
    found: dict[int, list[Version]] = {}
    for stored in sorted(works.read(), key=lambda stored: (stored["id"], stored["valid_from"])):
        assert stored["valid_from"] == stored["at"]
        assert stored["is_current"] == (stored["valid_to"] is None)
        version = stored["valid_from"], stored["valid_to"], stored["title"]
        before = found.setdefault(stored["id"], [])
        assert not before or (before[-1][1] is not None and before[-1][1] <= version[0])
        before.append(version)
    return found


def replayed(works: Works) -> dict[int, list[Version]]:
    """Return the versions as the change log alone tells them: one that begins ends the one before it."""
    found: dict[int, dict[int, Version]] = {}
    for change in sorted(works.log(), key=lambda change: (change[CHANGESET], change[ORDER])):
        versions = found.setdefault(change["id"], {})
        begin = change["valid_from"]
        for start, (_, end, title) in versions.items():
            if start < begin and (end is None or end > begin):
                versions[start] = start, begin, title
        versions[begin] = begin, change["valid_to"], change["title"]
    return {key: sorted(versions.values()) for key, versions in found.items()}


@large_in_soak
def test_versions_late_rows_and_deletes(make: Make, lane: str) -> None:
    """What a source tells of a row, in order, late, twice or deleted, becomes one line of versions."""
    works = make(lane=lane, order_by="at")
    batch = [row(1, 30, "c"), row(1, 10, "a"), row(1, 20, "a"), row(2, 10, "x"), row(2, 20, None)]
    batch += [row(3, 10, "k"), row(3, 10, "l"), row(None, 10, "no key"), row(4, None, "no moment")]
    counts = works.load(batch).rows
    assert (counts.inserted, counts.updated, counts.deleted, counts.unchanged) == (3, 1, 1, 1)
    assert (counts.duplicates, counts.quarantined, counts.read) == (1, 2, len(batch))
    rejected = {(row["rules"][0], row["reason"]) for row in works.read(QUARANTINE)}
    assert rejected == {
        ("key", 'the key column "id" has no value'),
        ("order_by", 'the order_by column "at" has no value'),
    }
    assert history(works) == {
        1: [(10, 30, "a"), (30, None, "c")],
        2: [(10, 20, "x")],
        3: [(10, None, "l")],
    }
    assert works.load(batch[:7]).batches == 0  # the same again changes nothing

    late = [row(1, 20, "b"), row(1, 40, "c"), row(2, 15, "y"), row(2, 30, "z"), row(3, 10, "m")]
    counts = works.load(late).rows
    assert (counts.updated, counts.undeleted, counts.unchanged) == (3, 1, 1)
    assert history(works) == {
        1: [(10, 20, "a"), (20, 30, "b"), (30, None, "c")],
        2: [(10, 15, "x"), (15, 20, "y"), (30, None, "z")],
        3: [(10, None, "m")],
    }
    assert works.load(late).batches == 0

    deletes = [row(1, 12, None), row(1, 30, None), row(2, None, None), row(5, 50, None)]
    counts = works.load(deletes).rows
    assert (counts.updated, counts.deleted, counts.ignored) == (1, 2, 1)
    assert history(works) == {
        1: [(10, 12, "a"), (20, 30, "b"), (30, 30, "c")],
        2: [(10, 15, "x"), (15, 20, "y"), (30, 50, "z")],
        3: [(10, None, "m")],
    }
    ops = [(change["id"], change[OP]) for change in works.log() if change[CHANGESET] == 3]
    assert sorted(ops) == [(1, "delete"), (1, "update"), (2, "delete")]

    counts = works.load([row(5, 40, "late"), row(5, 60, "new"), row(1, 30, "d")]).rows
    assert (counts.inserted, counts.undeleted, counts.stale) == (1, 1, 1)
    assert history(works)[5] == [(40, 50, "late"), (60, None, "new")]
    assert replayed(works) == history(works)


class Model:
    """What is known of each key: the moments at which something began or ended."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[int, str]] = {}
        self.ends: dict[int, set[int]] = {}

    def load(self, batch: list[dict[str, Any]]) -> None:
        last = {(event["id"], event["at"]): event for event in batch}
        for (key, at), event in sorted(last.items()):
            rows, ends = self.rows.setdefault(key, {}), self.ends.setdefault(key, set())
            if event["deleted"]:
                ends.add(at)
            elif at not in ends and (at in rows or self._in_force(key, at) != event["title"]):
                rows[at] = event["title"]

    def _in_force(self, key: int, at: int) -> str | None:
        starts = [start for start in self.rows[key] if start < at]
        start = max(starts, default=None)
        if start is None or any(start <= end < at for end in self.ends[key]):
            return None
        return self.rows[key][start]

    def history(self) -> dict[int, list[Version]]:
        found = {}
        for key, rows in self.rows.items():
            starts = sorted(rows)
            versions: list[Version] = []
            for start in starts:
                bounds = [other for other in starts if other > start]
                bounds += [end for end in self.ends[key] if end >= start]
                versions.append((start, min(bounds, default=None), rows[start]))
            if versions:
                found[key] = versions
        return found


@pytest.mark.parametrize(
    ("lane", "seed"),
    [
        ("small", 738585525),
        *(pytest.param(*each, marks=pytest.mark.soak) for each in (("small", 1), ("large", 3))),
    ],
)
def test_random_histories(make: Make, lane: str, seed: int) -> None:
    """Rows and deletes in any order: table and change log agree with a plain model after every batch."""
    generator = random.Random(seed)
    works, model = make(lane=lane, order_by="at"), Model()
    batches = 20 if lane == "small" else 3
    for _ in range(batches):
        batch = [
            row(generator.randrange(4), generator.randrange(40), generator.choice(["a", "b", "c", None]))
            for _ in range(generator.randrange(1, 9))
        ]
        result = works.load(batch)
        model.load(batch)
        assert history(works) == model.history(), batch
        counts = result.rows
        assert counts.read == len(batch)
        told = counts.inserted + counts.updated + counts.deleted + counts.undeleted
        assert not told or told == sum(change[CHANGESET] == result.changeset for change in works.log())
    assert works.load(batch).batches == 0
    assert replayed(works) == history(works)


@large_in_soak
def test_moments_of_files(tmp_path: Path, spark_running: None, lane: str) -> None:
    """Without `order_by` versions begin when the newest file of their batch was written."""
    pipeline = Folder.files_pipeline(
        mode="scd2", key=["id"], lane=lane, source={"max_files": 1}, versions={"valid_from": "since"}
    )
    folder = Folder(tmp_path / "project", pipelines={"sales": pipeline})
    moments = [datetime(2026, 1, day, 12, 30, 0, 123456, tzinfo=UTC) for day in (1, 3, 2)]
    for name, moment, value in zip("abc", moments, ["old", "new", "between"], strict=True):
        file = folder.write_csv(f"landing/{name}.csv", ["id", "v"], [(1, value)])
        at = int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000
        os.utime(file, ns=(at, at))
    assert folder.run().batches == 3
    found = folder.rows("shop.sales", "v", "since", "valid_to", "is_current")
    first, last, between = (moment.replace(tzinfo=None) for moment in moments)
    assert {tuple(_plain(value) for value in version) for version in found} == {
        ("old", first, between, False),
        ("between", between, last, False),
        ("new", last, None, True),
    }
    with pytest.raises(NoMoment):
        folder.open().load("sales", [{"id": 1, "v": "whenever"}])
    folder.write_csv("landing/d.csv", ["id", "v", "since"], [(1, "x", "2026-01-01")])
    with pytest.raises(ReservedName):
        folder.run()


def _plain(value: Any) -> Any:
    """Return a moment in UTC, whatever the zone of the session."""
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value
