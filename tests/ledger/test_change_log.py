"""The change log tells every change once, in order, and alone suffices to make the table anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from esker.ledger.change_log import (
    BATCH,
    CHANGESET,
    COMMITTED_AT,
    HASH_AFTER,
    HASH_BEFORE,
    OP,
    ORDER,
    PIPELINE,
    ROW,
    RUN,
)
from esker.pipeline.result import RunResult
from tests.load.works import CHANGES, LANES, WORKS, Row, Works

pytestmark = pytest.mark.spark


def work(number: int, at: int, title: str = "a", *, deleted: bool = False, **more: Any) -> Row:
    return {"id": number, "at": at, "title": title, "deleted": deleted, **more}


BATCHES: list[list[Row]] = [
    [work(number, 1) for number in range(6)],
    [work(0, 2, "b"), work(1, 2, deleted=True), work(2, 0, "stale"), work(6, 2), work(6, 1, "older")],
    [work(1, 3), work(0, 3, "c"), work(3, 3, deleted=True), work(9, 3, deleted=True)],
    [work(0, 4, "d", more="x"), work(3, 4, "back", more=None), work(4, 4, deleted=True)],
]
OPS = [
    dict.fromkeys(range(6), "insert"),
    {0: "update", 1: "delete", 6: "insert"},
    {1: "undelete", 0: "update", 3: "delete"},
    {0: "update", 3: "undelete", 4: "delete"},
]
OPS_HARD = [*OPS[:2], OPS[2] | {1: "insert"}, OPS[3] | {3: "insert"}]


@dataclass(frozen=True)
class Story:
    """Four batches in one table, with the log as it was after each."""

    works: Works
    deletes: str
    results: list[RunResult]
    logs: list[list[Row]]

    @property
    def log(self) -> list[Row]:
        return self.logs[-1]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory, spark_running: None) -> Callable[[str, str], Story]:
    """Tell each story once, whatever the order of the tests."""

    @cache
    def tell(lane: str, deletes: str) -> Story:
        works = Works(tmp_path_factory.mktemp("works"), lane=lane, deletes=deletes, order_by="at")
        results, logs = [], []
        for batch in BATCHES:
            results.append(works.load(batch))
            logs.append(works.log())
        return Story(works, deletes, results, logs)

    return tell


@pytest.fixture(params=[(lane, deletes) for lane in LANES for deletes in ("soft", "hard")], ids=" ".join)
def story(request: pytest.FixtureRequest, stories: Callable[[str, str], Story]) -> Story:
    return stories(*request.param)


def test_changesets_are_dense(story: Story) -> None:
    """The log holds changesets 1 to n without a gap, and says how far it is."""
    assert sorted({row[CHANGESET] for row in story.log}) == [1, 2, 3, 4]
    assert [result.changeset for result in story.results] == [1, 2, 3, 4]
    properties = story.works.properties(CHANGES)
    assert properties["esker.logged"] == "4"
    assert "esker.gaps" not in properties


def test_one_snapshot_of_the_log_per_changeset(story: Story) -> None:
    """Each changeset is one append, whose summary names it and the table's snapshot."""
    rows = story.works.sql(f"SELECT operation, summary FROM {CHANGES}.snapshots ORDER BY committed_at")
    assert [row.summary.get("esker.changeset") for row in rows] == ["1", "2", "3", "4"]
    assert {row.operation for row in rows} == {"append"}
    named = [int(row.summary["esker.snapshot"]) for row in rows]
    assert named == [result.snapshot_id for result in story.results]
    assert named == story.works.snapshots(WORKS)


def test_each_change_stands_there_once(story: Story) -> None:
    """Stale, unchanged and unknown rows are no changes; all others are, under their name."""
    expected = OPS if story.deletes == "soft" else OPS_HARD
    for number, ops in enumerate(expected, 1):
        rows = [row for row in story.log if row[CHANGESET] == number]
        assert {row["id"]: row[OP] for row in rows} == ops
        assert len(rows) == len(ops)


def test_log_alone_makes_the_table(story: Story) -> None:
    assert story.works.replayed() == story.works.rows()


def test_changeset_says_the_same_after_later_ones(story: Story) -> None:
    """Scenario 16: what was read of a changeset is read again, whatever happened to the rows since."""
    for number, log in enumerate(story.logs, 1):
        then = [row for row in log if row[CHANGESET] == number]
        # A column that came later is null in what was logged before.
        now = [
            {name: value for name, value in row.items() if name in then[0]}
            for row in story.log
            if row[CHANGESET] == number
        ]
        assert now == then


def test_delete_carries_the_last_row(story: Story) -> None:
    """A delete says what the row was, and with which order value it went."""
    gone = next(row for row in story.log if row["id"] == 1 and row[OP] == "delete")
    assert (gone["title"], gone[ORDER]) == ("a", 2)
    assert gone[HASH_AFTER] is None


def test_hashes_form_a_chain(story: Story) -> None:
    """The hash before a change is the one after the change before it."""
    for number in range(7):
        last = None
        for row in (row for row in story.log if row["id"] == number):
            assert row[HASH_BEFORE] == (None if row[OP] == "insert" else last)
            if row[OP] == "update":
                assert row[HASH_AFTER] != last
            if row[OP] == "delete":
                assert row[HASH_AFTER] is None
            else:
                last = row[HASH_AFTER]
                assert last is not None


def test_changes_name_their_origin(story: Story) -> None:
    """Pipeline, run, batch, place in the batch and time stand beside every change."""
    for number, result in enumerate(story.results, 1):
        rows = [row for row in story.log if row[CHANGESET] == number]
        assert {(row[PIPELINE], row[RUN]) for row in rows} == {("works", result.run_id)}
        assert len({row[BATCH] for row in rows}) == 1
        assert len({row[ROW] for row in rows}) == len(rows)
        assert len({row[COMMITTED_AT] for row in rows}) == 1
        assert [row[ROW] for row in rows] == sorted(row[ROW] for row in rows)


def test_column_that_came_later(story: Story) -> None:
    assert [row.get("more") for row in story.log if row["id"] == 0] == [None, None, None, "x"]


def test_two_pipelines_share_one_log(tmp_path_factory: pytest.TempPathFactory, spark_running: None) -> None:
    """Changesets are numbered per table: two pipelines of one table write one dense log."""
    works = two_pipelines(tmp_path_factory.mktemp)
    for number in range(2):
        works.load([{"id": number, "title": "works"}])
        works.project.load("more", [{"id": number + 10, "title": "more"}])
    assert [(row[CHANGESET], row[PIPELINE], row["id"]) for row in works.log()] == [
        (1, "works", 0),
        (2, "more", 10),
        (3, "works", 1),
        (4, "more", 11),
    ]
    assert works.replayed() == works.rows()


def two_pipelines(folder: Callable[[str], Any], **keys: Any) -> Works:
    """Return a project whose pipelines `works` and `more` load into one table."""
    works = Works(folder("works"), lane="small", **keys)
    works.folder.document["pipelines"]["more"] = works.folder.document["pipelines"]["works"]
    works.folder.save()
    works.project = works.folder.open()
    return works
