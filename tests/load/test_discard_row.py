"""Rows that carry columns which the table lacks go to the quarantine; the others are loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from esker.errors import InvalidProject
from tests.folder import Folder

pytestmark = pytest.mark.spark

MakeFolder = Callable[..., Folder]


def quarantined(folder: Folder) -> list[tuple[Any, ...]]:
    rows = folder.rows("shop.sales__quarantine", "changeset", "origin", "rules", "reason", "payload")
    return [(number, origin.rpartition("/")[2], *rest) for number, origin, *rest in rows]


def test_rows_of_csv_are_told_apart(make_folder: MakeFolder) -> None:
    """A file with a new column is not refused as a whole: only rows with a value there are left out."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(evolution="discard_row")})
    folder.write_csv("landing/a.csv", ["id", "v"], [(1, "a")])
    folder.run()
    folder.write_csv(
        "landing/b.csv", ["id", "extra", "v"], [(2, "", "b"), ("bad id", "x", "c"), (4, "y", "d")]
    )
    result = folder.run()
    assert (result.rows.read, result.rows.inserted, result.rows.quarantined) == (3, 1, 2)
    assert "rows with columns that the table lacks go to the quarantine: extra" in result.notes
    assert folder.rows() == [(1, "a"), (2, "b")]
    reason = 'the table lacks the column "extra"'
    assert [(*row[:4], json.loads(row[4])) for row in quarantined(folder)] == [
        (2, "b.csv", ["column"], reason, {"id": "4", "extra": "y", "v": "d"}),
        (2, "b.csv", ["column"], reason, {"id": "bad id", "extra": "x", "v": "c"}),
    ]
    folder.write_csv("landing/c.csv", ["id", "extra"], [(7, "z")])
    result = folder.run()  # nothing is left to load, and the row is not lost
    assert (result.rows.quarantined, result.changeset) == (1, 3)
    assert len(quarantined(folder)) == 3
    assert folder.run().rows.read == 0


@pytest.mark.parametrize("lane", ["small", "large"])
def test_rows_of_json_are_told_apart(make_folder: MakeFolder, lane: str) -> None:
    """Also where the new column stands inside another one, beside a row without a key."""
    pipeline = Folder.files_pipeline(
        "landing/*.jsonl", "jsonl", mode="upsert", key=["id"], evolution="discard_row", lane=lane
    )
    folder = make_folder(pipelines={"sales": pipeline})
    folder.write_jsonl("landing/a.jsonl", [{"id": 1, "place": {"city": "a"}, "tags": [{"t": "x"}]}])
    folder.run()
    rows: list[dict[str, Any]] = [
        {"id": 1, "place": {"city": "b"}, "tags": []},
        {"id": 2, "place": {"city": "b", "zip": "9"}},
        {"id": 3, "tags": [{"t": "x"}, {"t": "y", "u": 1}]},
        {"id": 4, "new": True, "place": None},
        {"place": {"city": "no key"}},
        {"id": 6, "new": None},
    ]
    folder.write_jsonl("landing/b.jsonl", rows)
    counts = folder.run().rows
    assert (counts.read, counts.updated, counts.inserted, counts.quarantined) == (6, 1, 1, 4)
    assert [row[0] for row in folder.rows("shop.sales", "id")] == [1, 6]
    found = {row[3]: (row[2], json.loads(row[4])) for row in quarantined(folder)}
    lacks = "the table lacks the column"
    assert found[f'{lacks} "place.zip"'] == (["column"], {"id": "2", "place": {"city": "b", "zip": "9"}})
    assert set(found) == {
        f'{lacks} "place.zip"',
        f'{lacks} "tags.element.u"',
        f'{lacks} "new"',
        'the key column "id" has no value',
    }
    # What was handed over is told apart in the same way.
    counts = folder.open().load("sales", [{"id": 8, "new": 1}, {"id": 9, "new": None}]).rows
    assert (counts.inserted, counts.quarantined) == (1, 1)


def test_complete_snapshots_leave_no_row_out(make_folder: MakeFolder) -> None:
    """A row that is left out would be taken for one that is gone."""
    pipeline = Folder.files_pipeline(mode="sync", key=["id"], evolution="discard_row")
    with pytest.raises(InvalidProject, match="discard_row is for append, upsert, insert_only"):
        make_folder(pipelines={"sales": pipeline}).open()
