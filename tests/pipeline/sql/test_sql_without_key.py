"""SQL on tables without a key: rows are changed where they lie, through the loader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from esker.errors import BadRows, SqlRefused, TableMoved
from esker.events import Event, Reached, Step
from esker.ledger.entry import read_entry
from esker.pipeline.api import OpenProject
from tests.folder import Folder

pytestmark = pytest.mark.spark

SALES = "lake.shop.sales"
ROWS = [{"id": number, "day": "2026-01-01", "amount": number * 1.5} for number in range(6)]


@pytest.fixture(params=["append", "replace", "replace_partitions"])
def sales(make_folder: Callable[..., Folder], request: pytest.FixtureRequest) -> OpenProject:
    """A project whose table has six rows, of which two pairs are alike, in each mode without a key."""
    return filled(make_folder, mode=request.param)


def filled(make_folder: Callable[..., Folder], **keys: Any) -> OpenProject:
    columns = {"id": "int", "day": "date", "amount": "double"}
    pipeline = Folder.files_pipeline("landing/*.jsonl", "jsonl", columns=columns, **keys)
    if keys.get("mode") == "replace_partitions":
        pipeline["partition_by"] = ["day"]
    folder = make_folder(pipelines={"sales": pipeline})
    folder.write_jsonl("landing/a.jsonl", [*ROWS, ROWS[0], ROWS[1]])
    project = folder.open()
    project.run("sales")
    return project


def changed(project: OpenProject, text: str) -> dict[str, int]:
    """Run a statement that writes; return what happened to rows."""
    run = project.sql(text).run
    assert run is not None
    found = {name: number for name, number in run.as_json()["rows"].items() if number}
    found.pop("read", None)
    return found


def ids(project: OpenProject, where: str = "true") -> list[int]:
    return sorted(row.id for row in project.table("shop.sales").where(where).collect())


def snapshots(project: OpenProject) -> list[Any]:
    return project.engine.spark.table(f"{SALES}.snapshots").orderBy("committed_at").collect()


def test_update_delete_and_insert(sales: OpenProject) -> None:
    """Each is one snapshot with a changeset; equal rows are each a row of their own; the position stays."""
    before = snapshots(sales)
    assert changed(sales, "DELETE FROM shop.sales WHERE id = 0") == {"deleted": 2}
    assert changed(sales, "UPDATE shop.sales SET amount = amount + 1 WHERE id = 1") == {"updated": 2}
    # Into another partition, where there are partitions.
    assert changed(sales, "UPDATE shop.sales s SET s.day = date'2026-02-02' WHERE s.id >= 4") == {
        "updated": 2
    }
    assert changed(
        sales, "INSERT INTO shop.sales (id, amount, day) SELECT id + 10, amount, day FROM shop.sales"
    ) == {"inserted": 6}
    assert ids(sales) == [1, 1, 2, 3, 4, 5, 11, 11, 12, 13, 14, 15]
    assert ids(sales, "amount = 2.5") == [1, 1, 11, 11]
    assert ids(sales, "day = '2026-02-02'") == [4, 5, 14, 15]
    after = snapshots(sales)
    assert len(after) == len(before) + 4
    assert [row.summary["esker.changeset"] for row in after[-4:]] == ["2", "3", "4", "5"]
    assert sales.run("sales").rows.read == 0, "the source was read already"

    # A statement that changes nothing commits nothing.
    assert changed(sales, "DELETE FROM shop.sales WHERE id = 77") == {}
    assert changed(sales, "UPDATE shop.sales SET amount = amount") == {}
    assert len(snapshots(sales)) == len(after)


@pytest.mark.parametrize("version", [2, 3])
def test_merge(make_folder: Callable[..., Folder], version: int) -> None:
    """All clauses, as Spark itself would do them; a row that two rows of the source delete goes once."""
    project = filled(make_folder, mode="append", format_version=version)
    spark = project.engine.spark
    spark.sql(f"CREATE TABLE lake.shop.twin AS SELECT * FROM {SALES}")
    merge = """
        MERGE INTO shop.{table} t
        USING (SELECT * FROM VALUES (0, 'go'), (1, 'up'), (9, 'new') AS s(id, what)) s
        ON t.id = s.id
        WHEN MATCHED AND s.what = 'go' THEN DELETE
        WHEN MATCHED THEN UPDATE SET amount = -1
        WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (s.id, 0.5)
        WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN UPDATE SET day = NULL"""
    project.sql(merge.format(table="twin"))
    assert changed(project, merge.format(table="sales")) == {"deleted": 2, "updated": 3, "inserted": 1}
    ours, twin = spark.table(SALES), spark.table("lake.shop.twin")
    assert ours.exceptAll(twin).count() == twin.exceptAll(ours).count() == 0
    twice = "MERGE INTO shop.sales t USING (SELECT * FROM VALUES (2), (2) AS s(id)) s ON t.id = s.id"
    assert changed(project, f"{twice} WHEN MATCHED THEN DELETE") == {"deleted": 1}
    with pytest.raises(SqlRefused, match="MERGE"):
        project.sql(
            "MERGE INTO shop.sales t USING (SELECT * FROM VALUES (1, 1), (1, 2) AS s(id, n)) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = s.n"
        )


def test_rows_are_found_once(make_folder: Callable[..., Folder]) -> None:
    """What a condition chose by chance is what goes, and what comes in its place."""
    project = filled(make_folder, mode="append")
    project.load("sales", [{"id": number, "amount": 0.0} for number in range(1000)])
    run = project.sql("UPDATE shop.sales SET amount = -1 - rand() WHERE amount = 0 AND rand() < 0.5").run
    assert run is not None
    assert 300 < run.rows.updated < 700
    assert len(ids(project)) == 1008
    assert len(ids(project, "amount <= -1")) == run.rows.updated


def test_what_does_not_fit_changes_nothing(make_folder: Callable[..., Folder]) -> None:
    """A null for a required column is told, and the row stays as it was."""
    columns = {"id": {"type": "int", "required": True}, "n": "int"}
    pipeline = Folder.files_pipeline("landing/*.jsonl", "jsonl", columns=columns)
    project = make_folder(pipelines={"sales": pipeline}).open()
    project.load("sales", [{"id": 1, "n": 1}])
    for text in ("UPDATE shop.sales SET id = NULL", "INSERT INTO shop.sales (id, n) VALUES (NULL, 2)"):
        with pytest.raises(BadRows) as refused:
            project.sql(text)
        assert "required" in str(refused.value.as_json())
    assert [tuple(row) for row in project.table("shop.sales").collect()] == [(1, 1)]


def test_somebody_commits_meanwhile(make_folder: Callable[..., Folder]) -> None:
    """The statement is evaluated anew on what is there by then."""
    project = filled(make_folder, mode="append")
    spark = project.engine.spark
    moved: list[int] = []

    def listen(event: Event) -> None:
        if isinstance(event, Reached) and event.step == Step.STAGED and not moved:
            moved.append(1)
            spark.sql(f"INSERT INTO {SALES} (id, day, amount) VALUES (4, NULL, 8.0)")

    *_, answer = project.sql_answers("UPDATE shop.sales SET amount = amount * 2 WHERE id = 4", listen)
    assert answer.run is not None
    assert (moved, answer.run.rows.updated) == ([1], 2)
    assert sorted(row.amount for row in project.table("shop.sales").where("id = 4").collect()) == [12.0, 16.0]


def test_somebody_always_commits_meanwhile(make_folder: Callable[..., Folder]) -> None:
    """After some attempts the statement is given up, and nothing of it is in the table."""
    project = filled(make_folder, mode="append")

    def listen(event: Event) -> None:
        if isinstance(event, Reached) and event.step == Step.STAGED:
            project.engine.spark.sql(f"INSERT INTO {SALES} (id, day, amount) VALUES (9, NULL, 8.0)")

    with pytest.raises(TableMoved):
        list(project.sql_answers("UPDATE shop.sales SET amount = amount * 2 WHERE id = 4", listen))
    assert len(ids(project, "id = 9")) > 1
    assert [row.amount for row in project.table("shop.sales").where("id = 4").collect()] == [6.0]


def test_a_run_goes_on_behind_statements(make_folder: Callable[..., Folder]) -> None:
    """What a statement removed does not come back, and new files are loaded."""
    project = filled(make_folder, mode="append")
    project.sql("DELETE FROM shop.sales WHERE id < 3")
    entry = read_entry(dict(project.engine.spark.sql(f"SHOW TBLPROPERTIES {SALES}").collect()), "sales")
    assert entry is not None
    assert entry.changeset == 2
    (project.project.folder / "landing" / "b.jsonl").write_text('{"id": 50}\n')
    result = project.run("sales")
    assert (result.rows.inserted, result.notes) == (1, ())
    assert ids(project) == [3, 4, 5, 50]


def test_versions_are_not_written_to(make_folder: Callable[..., Folder]) -> None:
    """A history is not corrected by hand: its versions belong together."""
    pipeline = Folder.files_pipeline("landing/*.jsonl", "jsonl", mode="scd2", key=["id"], order_by="at")
    project = make_folder(pipelines={"sales": pipeline}).open()
    project.load("sales", [{"id": 1, "at": 1}])
    with pytest.raises(SqlRefused, match="DELETE") as refused:
        project.sql("DELETE FROM shop.sales")
    assert "scd2" in refused.value.reason
