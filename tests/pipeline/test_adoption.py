"""Adopting tables that others made: nothing is rewritten, and rows are compared by what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.errors import AdoptionRefused, NotOfAPipeline, TableNotFound, TableRewound
from esker.ledger.change_log import CHANGESET
from esker.ledger.entry import read_entry, read_head
from esker.pipeline.reading import ReadingProject
from tests.folder import Folder
from tests.load.works import CHANGES, WORKS, Make, Works, large_in_soak

pytestmark = pytest.mark.spark


@pytest.fixture
def make(make: Make) -> Make:
    def made(**keys: Any) -> Works:
        works: Works = make(**keys)
        works.project.engine.open_catalog("lake")
        works.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
        return works

    return made


def data_files(works: Works) -> set[str]:
    return {row.file_path for row in works.sql(f"SELECT file_path FROM {WORKS}.data_files")}


def test_tables_of_format_version_1(folder: Folder) -> None:
    """They are read whole, by what was appended, without Spark, and appended to; they stay what they are.

    Until a newer version is declared: `plan` shows the upgrade and makes it, and rows are the same.
    """
    old = "lake.shop.old"
    source = {"type": "table", "table": "shop.old"}
    folder.document["pipelines"] = {
        "copy": {"source": {**source, "read": "appended"}, "table": "shop.copy"},
        "all": {"source": source, "table": "shop.all", "mode": "replace"},
        "sales": Folder.files_pipeline(table="shop.old"),
    }
    folder.save()
    engine = folder.open().engine
    engine.open_catalog("lake")
    spark = engine.spark
    spark.sql("CREATE NAMESPACE lake.shop")
    spark.sql(
        f"CREATE TABLE {old} (id bigint, name string) USING iceberg TBLPROPERTIES ('format-version' = '1')"
    )
    spark.sql(f"INSERT INTO {old} VALUES (1, 'agate'), (2, 'basalt')")
    for number, name in ((3, "chalk"), (4, "dolomite")):
        folder.write_csv(f"landing/{number}.csv", ["id", "name"], [(number, name)])
        assert folder.open().plan(["sales"])[0].error is None
        assert folder.run("sales").rows.inserted == 1
        assert folder.run("sales").rows.read == 0
        assert folder.run("copy").rows.inserted == (3 if number == 3 else 1)
    folder.run("all")
    rows = [(1, "agate"), (2, "basalt"), (3, "chalk"), (4, "dolomite")]
    for table in ("shop.old", "shop.copy", "shop.all"):
        assert folder.rows(table) == rows
    tasks = ReadingProject.at(folder.path).reindex_tasks("shop.old")
    assert sorted(tuple(row.values()) for task in tasks for row in task.to_arrow().to_pylist()) == rows
    assert folder.open().show("shop.old").as_json()["format_version"] == 1

    folder.change(format_version=2)
    [planned] = folder.open().plan(["sales"])
    assert [str(change) for change in planned.changes] == ["upgrade table shop.old to format version 2"]
    folder.open().apply([planned])
    assert folder.open().show("shop.old").as_json()["format_version"] == 2
    assert folder.rows("shop.old") == rows


@large_in_soak
def test_adopted_table(make: Make, lane: str) -> None:
    """What is added is shown first; then no file is rewritten, and only what differs becomes a change."""
    works = make(lane=lane, order_by="at")
    works.sql(
        f"CREATE TABLE {WORKS} (id bigint, at bigint, title string, more struct<n: int>) USING iceberg "
        "TBLPROPERTIES ('format-version' = '1')"
    )
    works.sql(f"INSERT INTO {WORKS} SELECT id, 5, 'a', struct(1) FROM range(6)")
    works.sql(f"INSERT INTO {WORKS} VALUES (5, 6, 'b', null), (null, 1, 'nobody', null)")
    before = data_files(works)

    plan = works.project.plan_adoption("shop.works")
    told = " ".join(str(change) for change in plan.changes)
    assert all(word in told for word in ("format version 2", "deleted", "_esker_hash", "works__changes"))
    census = plan.census
    assert (census.rows, census.keyless, census.duplicate_keys, census.surplus) == (8, 1, 1, 1)
    assert "esker.head" not in works.properties()
    assert [row.col_name for row in works.sql(f"DESCRIBE {WORKS}")][:4] == ["id", "at", "title", "more"]

    done = works.project.adopt("shop.works")
    assert data_files(works) == before
    assert done.snapshot_id == works.snapshots()[-1]
    assert works.project.adopt("shop.works").is_done
    result = works.load(
        [
            {"id": 0, "at": 5, "title": "a", "more": {"n": 1}},  # the same
            {"id": 1, "at": 9, "title": "a", "more": {"n": 1}},  # the same, newer
            {"id": 2, "at": 6, "title": "b", "more": {"n": 1}},
            {"id": 3, "at": 6, "title": "a", "more": {"n": 2}},
            {"id": 4, "at": 6, "title": "a", "more": {"n": 1}, "deleted": True},
            {"id": 5, "at": 6, "title": "b", "more": None},  # of two rows the newer one stays
            {"id": 6, "at": 5, "title": "a", "more": {"n": 1}},
        ]
    )
    rows = result.rows
    assert (rows.unchanged, rows.updated, rows.deleted, rows.inserted) == (3, 2, 1, 1)
    assert result.changeset == 1
    assert works.ops(1) == {2: "update", 3: "update", 4: "delete", 6: "insert"}
    assert len(works.read()) == 8


@large_in_soak
def test_adopted_files(make: Make, lane: str) -> None:
    """Parquet files become a table as they lie; columns are known by name, also after one is renamed."""
    works = make(lane=lane)
    folder = works.folder.path / "old"
    folder.mkdir()
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("n", pa.int32())])
    for part in range(3):
        rows = [{"id": 10 * part + n, "name": "a", "n": n} for n in range(5)]
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"part{part}.parquet")
    content = {path: path.read_bytes() for path in folder.iterdir()}

    plan = works.project.plan_adoption("shop.works", files="old/*.parquet")
    assert (len(plan.files), plan.census.rows, plan.census.duplicate_keys) == (3, 15, 0)
    with pytest.raises(TableNotFound):
        works.project.plan_adoption("shop.works")
    works.project.adopt("shop.works", files="old/*.parquet")
    assert {path: path.read_bytes() for path in folder.iterdir()} == content
    assert len(data_files(works)) == 3
    assert works.rows()[12] == {"id": 12, "name": "a", "n": 2, "deleted": None}
    bounds = works.sql(f"SELECT min(readable_metrics.id.lower_bound) AS low FROM {WORKS}.data_files")
    assert bounds[0].low == 0

    result = works.load([{"id": 1, "name": "a", "n": 1}, {"id": 2, "name": "b", "n": 2}])
    assert (result.rows.unchanged, result.rows.updated) == (1, 1)
    works.change(columns={"title": {"type": "string", "renamed_from": "name"}})
    result = works.load([{"id": 3, "title": "a", "n": 3}, {"id": 4, "title": "b", "n": 4}])
    assert (result.rows.unchanged, result.rows.updated) == (1, 1)
    assert works.rows()[14] == {"id": 14, "title": "a", "n": 4, "deleted": None}
    with pytest.raises(AdoptionRefused, match="cannot be adopted"):
        works.project.adopt("shop.works", files="old/*.parquet")


def test_files_that_cannot_be_adopted(make: Make) -> None:
    """Files whose columns would be taken for others, or whose rows have no key, are refused."""
    works = make(lane="small")
    folder = works.folder.path / "old"
    folder.mkdir()
    numbered = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "7"})])
    pq.write_table(pa.table({"id": [1]}, schema=numbered), folder / "numbered.parquet")
    pq.write_table(pa.table({"id": pa.array([1, None], pa.int64())}), folder / "keyless.parquet")
    for name, why in (("numbered", "field id 7"), ("keyless", "no value in their key")):
        with pytest.raises(AdoptionRefused) as refused:
            works.project.adopt("shop.works", files=f"old/{name}.parquet")
        assert why in refused.value.reason
    with pytest.raises(NotOfAPipeline, match=r"shop\.other"):
        works.project.adopt("shop.other")
    assert works.sql("SHOW TABLES IN lake.shop") == []


@large_in_soak
def test_table_that_was_rolled_back(make: Make, lane: str) -> None:
    """After a rollback by somebody else, adopting goes on: the position stays, the log gets a gap."""
    works = make(lane=lane)
    works.load([{"id": 1, "title": "a"}, {"id": 2, "title": "a"}])
    works.load([{"id": 1, "title": "b"}])
    works.sql(f"CALL lake.system.rollback_to_snapshot('shop.works', {works.snapshots()[0]})")
    works.sql(f"UPDATE {WORKS} SET title = 'c' WHERE id = 2")
    with pytest.raises(TableRewound) as stopped:
        works.load([{"id": 1, "title": "b"}])
    assert "esker adopt shop.works" in stopped.value.remedy
    before = read_entry(works.properties(), "works")

    plan = works.project.plan_adoption("shop.works")
    assert (plan.is_rewound, plan.is_done, plan.changes) == (True, False, ())
    works.project.adopt("shop.works")
    after, head = read_entry(works.properties(), "works"), read_head(works.properties())
    assert before is not None
    assert after is not None
    assert head is not None
    assert (after.position, after.epoch, head.changeset) == (before.position, before.epoch + 1, 3)
    result = works.load([{"id": 1, "title": "b"}, {"id": 2, "title": "a"}])
    assert (result.rows.updated, result.changeset, result.notes) == (2, 4, ())
    assert {row[CHANGESET] for row in works.log()} == {1, 2, 4}
    assert json.loads(works.properties(CHANGES)["esker.gaps"]) == [[3, 3]]


def test_replaced_table(make: Make) -> None:
    """A table that somebody made anew, without hash and ledger, is adopted behind the log that there is."""
    works = make(lane="small")
    works.load([{"id": 1, "title": "a"}])
    works.sql(f"DROP TABLE {WORKS}")
    works.sql(f"CREATE TABLE {WORKS} AS SELECT 1L AS id, 'a' AS title")
    works.project.adopt("shop.works")
    result = works.load([{"id": 1, "title": "a"}, {"id": 2, "title": "a"}])
    assert (result.rows.unchanged, result.rows.inserted, result.changeset) == (1, 1, 3)
    assert json.loads(works.properties(CHANGES)["esker.gaps"]) == [[2, 2]]


def test_command(make: Make, tmp_path: Path) -> None:
    """Without --apply nothing is changed."""
    from typer.testing import CliRunner

    from esker.cli.main import app

    works = make(lane="small")
    works.sql(f"CREATE TABLE {WORKS} AS SELECT 1L AS id")
    here = ["adopt", "shop.works", "--project", str(works.folder.path)]
    shown = CliRunner().invoke(app, here)
    assert (shown.exit_code, "nothing was changed" in shown.stdout) == (0, True)
    assert "_esker_hash" in shown.stdout
    assert "esker.head" not in works.properties()
    done = json.loads(CliRunner().invoke(app, [*here, "--apply", "--json"]).stdout)
    assert (done["applied"], done["snapshot_id"]) == (True, works.snapshots()[-1])
    assert json.loads(CliRunner().invoke(app, [*here, "--json"]).stdout)["nothing_to_do"]
