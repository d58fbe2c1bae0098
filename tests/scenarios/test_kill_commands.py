"""Statements and adoptions that are killed: done or not done, and never half."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from esker.events import Step
from esker.ledger.change_log import CHANGESET, OP
from tests.folder import Folder
from tests.scenarios.test_kill import run_and_kill

pytestmark = [pytest.mark.spark, pytest.mark.process]

AROUND = [Step.BEFORE_COMMIT, Step.AFTER_COMMIT, Step.BEFORE_LOG]
ELSEWHERE = [step for step in Step if step not in (*AROUND, Step.READ, Step.STAGED, Step.RECORDED)]
MERGE = """
    MERGE INTO shop.sales t USING (SELECT * FROM VALUES (1, 'x'), (2, 'y'), (7, 'z') AS v(id, title)) s
    ON t.id = s.id
    WHEN MATCHED AND s.id = 2 THEN DELETE
    WHEN MATCHED THEN UPDATE SET title = s.title
    WHEN NOT MATCHED THEN INSERT (id, title) VALUES (s.id, s.title)"""


def project(path: Path, **keys: Any) -> Folder:
    """A project whose table has four rows."""
    pipeline = Folder.files_pipeline(
        mode="upsert", key=["id"], columns={"id": "int", "title": "string"}, deletes="hard", **keys
    )
    folder = Folder(path / "project", pipelines={"sales": pipeline})
    folder.write_csv("landing/a.csv", ["id", "title"], [(number, "a") for number in range(4)])
    return folder


def check_statement(folder: Folder, step: Step) -> None:
    """Kill a statement, run what a person would run, and compare table and log with what it says."""
    folder.run()
    before = [(number, "a") for number in range(4)]
    after = [(0, "a"), (1, "x"), (3, "a"), (7, "z")]
    run_and_kill(folder, step, 1, "sql", MERGE)
    is_done = step in (Step.AFTER_COMMIT, Step.BEFORE_LOG, Step.LOGGED, Step.FINISHED)
    assert folder.rows("shop.sales", "id", "title") == (after if is_done else before)
    if is_done:
        folder.run()  # whoever comes next writes what the log is owed
    else:
        folder.open().sql(MERGE)
    assert folder.rows("shop.sales", "id", "title") == after
    log = folder.rows("shop.sales__changes", CHANGESET, OP, "id", "title")
    assert [row for row in log if row[0] > 1] == [
        (2, "delete", 2, "a"),
        (2, "insert", 7, "z"),
        (2, "update", 1, "x"),
    ]


def test_statement_that_is_killed(tmp_path: Path, spark_running: None) -> None:
    """All of a MERGE, or nothing of it, in table and change log."""
    check_statement(project(tmp_path, lane="small"), Step.BEFORE_LOG)


@pytest.mark.soak
@pytest.mark.parametrize("lane", ["small", "large"])
@pytest.mark.parametrize("step", [*AROUND, *ELSEWHERE])
def test_statement_that_is_killed_at_every_step(
    tmp_path: Path, spark_running: None, step: Step, lane: str
) -> None:
    """The same at every step, in both lanes."""
    check_statement(project(tmp_path, lane=lane), step)


@pytest.mark.parametrize(
    "step", [pytest.param(Step.BEFORE_COMMIT, marks=pytest.mark.soak), Step.AFTER_COMMIT]
)
def test_adoption_that_is_killed(tmp_path: Path, spark_running: None, step: Step) -> None:
    """The table keeps its rows; adopting it again ends what was begun, and the pipeline goes on."""
    folder = project(tmp_path)
    opened = folder.open()
    opened.engine.open_catalog("lake")
    for statement in (
        "CREATE NAMESPACE lake.shop",
        "CREATE TABLE lake.shop.sales (id int, title string) USING iceberg",
        "INSERT INTO lake.shop.sales VALUES (0, 'a'), (1, 'old'), (9, 'old')",
    ):
        opened.engine.spark.sql(statement)
    run_and_kill(folder, step, 1, "adopt", "shop.sales")
    assert folder.rows("shop.sales", "id", "title") == [(0, "a"), (1, "old"), (9, "old")]
    assert folder.open().adopt("shop.sales").is_done == (step is Step.AFTER_COMMIT)
    rows = folder.run().rows
    assert (rows.unchanged, rows.updated, rows.inserted) == (1, 1, 2)
    assert folder.rows("shop.sales", "id", "title") == [(0, "a"), (1, "a"), (2, "a"), (3, "a"), (9, "old")]
    assert folder.rows("shop.sales__changes", CHANGESET, OP, "id") == [
        (1, "insert", 2),
        (1, "insert", 3),
        (1, "update", 1),
    ]
