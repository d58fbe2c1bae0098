"""SQL on a project: everything may be read; what is written to a pipeline's table goes through its loader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from esker.engine.pins import is_spark
from esker.errors import EskerError, PipelineBusy, SqlInvalid, SqlRefused
from esker.events import Step
from esker.ledger.change_log import CHANGESET, HASH_AFTER, OP
from esker.ledger.entry import read_entry
from esker.ledger.leases import held
from tests.folder import Folder
from tests.load.works import WORKS, Make, Works, at, large_in_soak

pytestmark = pytest.mark.spark


def titles(works: Works) -> dict[Any, Any]:
    return {number: row["title"] for number, row in works.rows().items() if not row.get("deleted")}


def counts(works: Works, text: str) -> dict[str, int]:
    """Run a statement that writes; return what happened to rows."""
    run = works.project.sql(text).run
    assert run is not None
    found = {name: number for name, number in run.as_json()["rows"].items() if number}
    found.pop("read", None)
    return found


@large_in_soak
def test_update_delete_and_insert(make: Make, lane: str) -> None:
    """Each is one changeset with rows in the log, true hashes, and a position that stays."""
    works = make(lane=lane, order_by="at", ignore_columns=["seen"])
    works.change(source={"type": "files", "path": "landing/*.jsonl", "format": "jsonl"})
    works.folder.write_jsonl(
        "landing/a.jsonl", [{"id": n, "at": 10, "title": "a", "seen": 0} for n in range(6)]
    )
    first = works.project.run("works")
    before = read_entry(works.properties(), "works")
    hashed = {row.id: row._esker_hash for row in works.sql(f"SELECT id, _esker_hash FROM {WORKS}")}

    assert counts(works, "UPDATE shop.works SET title = upper(title) WHERE id < 2") == {"updated": 2}
    assert counts(works, "UPDATE shop.works w SET w.title = 'a' WHERE w.id = 0") == {"updated": 1}
    assert counts(works, "DELETE FROM shop.works WHERE id = (SELECT max(id) FROM shop.works)") == {
        "deleted": 1
    }
    # A person's word counts: neither the older order value nor an ignored column keeps it out.
    assert counts(works, "UPDATE shop.works SET title = 'old', at = 1 WHERE id = 2") == {"updated": 1}
    assert counts(works, "UPDATE shop.works SET seen = 7 WHERE id = 3") == {"unchanged": 1}
    assert counts(works, "INSERT INTO shop.works (id, at, title) VALUES (5, 3, 'back'), (9, 3, 'new')") == {
        "inserted": 1,
        "undeleted": 1,
    }
    rows = works.rows()
    assert titles(works) == {0: "a", 1: "A", 2: "old", 3: "a", 4: "a", 5: "back", 9: "new"}
    assert (rows[2]["at"], rows[3]["seen"], rows[5]["at"]) == (1, 7, 3)
    assert {row.id: row._esker_hash for row in works.sql(f"SELECT id, _esker_hash FROM {WORKS}")}[
        0
    ] == hashed[0]

    log = works.log()
    assert [works.ops(number) for number in range(2, 7)] == [
        {0: "update", 1: "update"},
        {0: "update"},
        {5: "delete"},
        {2: "update"},
        {5: "undelete", 9: "insert"},
    ]
    assert [row[HASH_AFTER] for row in log if row[CHANGESET] == 3] == [hashed[0]]
    after = read_entry(works.properties(), "works")
    assert before is not None
    assert after is not None
    assert (after.position, after.changeset) == (before.position, 6)
    assert first.changeset == 1
    assert works.project.run("works").rows.read == 0, "the source was read already"
    # A statement that changes nothing commits nothing.
    head = works.snapshots()[-1]
    assert counts(works, "UPDATE shop.works SET title = title") == {}
    assert counts(works, "DELETE FROM shop.works WHERE id = 77") == {}
    assert works.snapshots()[-1] == head


@large_in_soak
def test_merge(make: Make, lane: str) -> None:
    """All clauses of MERGE, as Spark itself would do them on a table of its own."""
    columns = {"id": "bigint", "title": "string", "more": "struct<n: int, m: int>"}
    works = make(lane=lane, deletes="hard", columns=columns)
    rows = [{"id": n, "title": "a", "more": {"n": n, "m": 0}} for n in range(8)]
    works.load(rows)
    works.sql(f"CREATE TABLE lake.shop.twin AS SELECT * FROM {WORKS}")
    works.sql(
        "CREATE OR REPLACE TEMPORARY VIEW sent AS SELECT * FROM VALUES "
        "(1, 'b'), (2, 'drop'), (3, 'a'), (20, 'new'), (21, 'never'), (20, 'far') AS sent(id, title)"
    )
    merge = """
        MERGE INTO shop.{table} AS t USING (SELECT id, title FROM sent) AS s ON t.id = s.id
        WHEN MATCHED AND s.title = 'drop' THEN DELETE
        WHEN MATCHED AND t.title <> s.title THEN UPDATE SET t.title = concat(t.title, s.title), more.m = t.id
        WHEN NOT MATCHED AND title = 'never' THEN INSERT (id, title) VALUES (id, 'wrong')
        WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN UPDATE SET title = 'left'
        WHEN NOT MATCHED BY SOURCE AND t.id > 5 THEN DELETE"""
    works.project.sql(merge.format(table="twin"))
    assert counts(works, merge.format(table="works")) == {"inserted": 1, "updated": 2, "deleted": 3}
    twin = {row["id"]: row for row in works.read("lake.shop.twin")}
    assert works.rows() == twin
    assert set(works.ops(2)) == {1, 2, 5, 6, 7, 21}

    star = (
        "MERGE INTO shop.works t USING (SELECT 1L AS id, 'star' AS title UNION ALL SELECT 30L, 'star') s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert counts(works, star) == {"inserted": 1, "updated": 1}
    assert works.rows()[1] == {"id": 1, "title": "star", "more": {"n": 1, "m": 1}}
    twice = "MERGE INTO shop.works t USING (SELECT explode(array(1, 1)) AS id) s ON t.id = s.id "
    with pytest.raises(SqlRefused) as refused:
        works.project.sql(twice + "WHEN MATCHED THEN UPDATE SET title = 'x'")
    assert "several rows" in refused.value.reason
    with pytest.raises(SqlRefused) as refused:
        works.project.sql("UPDATE shop.works SET id = id + 1")
    assert "another key" in refused.value.reason
    assert counts(works, "DELETE FROM shop.works") == {"deleted": len(twin) + 1}
    assert works.rows() == {}


def test_statement_on_a_table_that_moves(make: Make) -> None:
    """What a statement found is only right on the snapshot it looked at: it looks again."""
    works = make(lane="small")
    works.load([{"id": 1, "title": "a"}, {"id": 2, "title": "a"}])
    foreign = at(Step.LOCATED, lambda: works.sql(f"UPDATE {WORKS} SET title = concat(title, 'b')"))
    run = works.project.sql("UPDATE shop.works SET title = concat(title, 'c') WHERE id = 1", foreign).run
    assert run is not None
    assert titles(works) == {1: "abc", 2: "ab"}
    assert any("compared by content" in note for note in run.notes)


def test_reading(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries, time travel, SHOW, DESCRIBE, ALTER, CALL, views; names without a catalog are the project's."""
    works = make(lane="small")
    works.load([{"id": n, "title": "a"} for n in range(5)])
    first = works.snapshots()[0]
    works.load([{"id": 5, "title": "a"}])
    project = works.project
    shown = project.sql("SELECT id, id, struct(title AS t) AS s FROM shop.works ORDER BY id").show(limit=2)
    assert shown.columns == ("id", "id (2)", "s")
    assert shown.rows == ({"id": 0, "id (2)": 0, "s": {"t": "a"}}, {"id": 1, "id (2)": 1, "s": {"t": "a"}})
    assert shown.is_cut
    answer = project.sql(f"SELECT count(*) AS n FROM shop.works VERSION AS OF {first}")
    assert answer.frame is not None
    assert answer.frame.first() == (5,)
    script = """
        USE shop;
        ALTER TABLE works ADD COLUMN more string;
        CREATE OR REPLACE TEMPORARY VIEW some AS SELECT * FROM works WHERE id > 3;  -- a view; of this text
        CALL lake.system.rewrite_data_files('shop.works');
        SELECT count(*) AS n, max(more) AS more FROM some"""
    assert project.sql(script).show().rows == ({"n": 2, "more": None},)
    with pytest.raises(SqlInvalid, match="works"):
        project.sql("SELECT * FROM works")  # the text before has ended, and its USE with it
    assert works.load([{"id": 5, "title": "a", "more": "m"}]).rows.updated == 1
    names = {row["tableName"] for row in project.sql("SHOW TABLES IN shop").show().rows}
    assert {"works", "works__changes"} <= names
    # Secrets do not come out, however one asks.
    project.engine.spark.conf.set("spark.sql.catalog.lake.jdbc.password", "open sesame")
    for ask in ("SET", "SET -v", "SET spark.sql.catalog.lake.jdbc.password"):
        assert "open sesame" not in json.dumps(project.sql(ask).as_json(100_000))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("DROP TABLE shop.works", "project file"),
        ("DROP TABLE IF EXISTS lake.shop.works PURGE", "project file"),
        ("DROP NAMESPACE shop CASCADE", "project file"),
        ("TRUNCATE TABLE shop.works", "DELETE FROM"),
        ("INSERT OVERWRITE shop.works SELECT 1, 'a', false", "DELETE FROM"),
        ("INSERT INTO shop.works REPLACE WHERE id = 1 SELECT 1, 'a', false, 0", "DELETE FROM"),
        ("CREATE OR REPLACE TABLE shop.works AS SELECT 1 AS id", "mode: replace"),
        ("ALTER TABLE shop.works RENAME TO shop.other", "table:"),
        ("ALTER TABLE shop.works DROP COLUMN _esker_hash", "drop_columns"),
        ("ALTER TABLE shop.works RENAME COLUMN title TO name", "renamed_from"),
        ("ALTER TABLE shop.works SET TBLPROPERTIES ('esker.head' = '')", "ledger"),
        ("ALTER TABLE shop.works UNSET TBLPROPERTIES ('esker.ledger.works')", "ledger"),
        ("CALL lake.system.rollback_to_snapshot('shop.works', 1)", "MERGE INTO"),
        ("CALL lake.system.set_current_snapshot(table => 'lake.shop.works', snapshot_id => 1)", "MERGE INTO"),
        (
            "CALL lake.system.add_files(table => 'shop.works', source_table => '`parquet`.`/x`')",
            "esker adopt",
        ),
        ("CALL lake.system.rewrite_data_files('shop.works__changes')", "project file"),
        ("INSERT INTO shop.works__changes SELECT * FROM shop.works__changes", "the table itself"),
        ("DELETE FROM shop.works__files", "the table itself"),
        ("DELETE FROM shop.works__deletes", "the table itself"),
        ("DROP TABLE shop.works__quarantine", "esker quarantine"),
        ("TRUNCATE TABLE shop.works__quality", "esker quality"),
        ("DROP TABLE IF EXISTS shop.WORKS__positions PURGE", "esker backfill"),
        ("DROP TABLE shop.search__dead", "--retry-dead"),
        ("DELETE FROM lake.shop.search__dead", "--retry-dead"),
        ("CALL lake.system.rollback_to_snapshot('shop.search__dead', 1)", "MERGE INTO"),
        ("DROP TABLE IDENTIFIER('shop.works__changes')", "Write the name out"),
        ("DELETE FROM IDENTIFIER('shop.' || 'works__changes')", "Write the name out"),
        ("INSERT INTO IDENTIFIER('shop.works') (id) SELECT 1", "Write the name out"),
        (
            "MERGE INTO IDENTIFIER('shop.works') t USING shop.own s ON t.id = s.id WHEN MATCHED THEN DELETE",
            "Write the name out",
        ),
        ("DROP NAMESPACE IDENTIFIER('shop') CASCADE", "Write the name out"),
        ("CALL lake.system.rollback_to_snapshot(' shop . works', 1)", "MERGE INTO"),
        ("CALL lake.system.rollback_to_snapshot(concat('shop', '.works'), 1)", "MERGE INTO"),
        ("CALL lake.system.rollback_to_snapshot('shop.works.tag_first', 1)", "MERGE INTO"),
        ("ALTER TABLE shop.works CREATE OR REPLACE BRANCH main AS OF VERSION 1", "MERGE INTO"),
        ("USE shop; CALL lake.system.rollback_to_snapshot('works__quality', 1)", "MERGE INTO"),
        (
            "CALL lake.system.remove_orphan_files(table => 'shop.works', location => '/lake/shop')",
            "the table's own folder",
        ),
        ("WITH x AS (SELECT 1 AS id) INSERT INTO shop.works (id) SELECT id FROM x", "INSERT INTO … WITH"),
        ("UPDATE shop.works SET _esker_hash = 1", "no column"),
        ("INSERT INTO shop.works VALUES (1, 'a', false, 1, 2)", "values"),
        ("EXECUTE IMMEDIATE 'DROP TABLE shop.works'", "Write it out"),
        ("SET spark.sql.ansi.enabled = false", "spark: conf:"),
        ("CACHE TABLE shop.works", "a temporary view"),
        ("CACHE TABLE kept AS SELECT * FROM shop.works", "a temporary view"),
        ("SET TIME ZONE 'Asia/Tokyo'", "spark: conf:"),
    ],
)
def test_refused(refusing: Works, text: str, named: str) -> None:
    """What would break a promise is refused, and the right way is named."""
    before = refusing.snapshots()
    if text.startswith("EXECUTE") and is_spark("3.5"):
        with pytest.raises(SqlInvalid):  # it has no such statement
            refusing.project.sql(text)
        return
    with pytest.raises(SqlRefused) as refused:
        refusing.project.sql(text)
    assert named in f"{refused.value.message} {refused.value.reason} {refused.value.remedy}"
    assert refusing.snapshots() == before


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory, spark_running: None) -> Works:
    consumers = {"search": {"from": "works", "to": {"type": "files", "path": "sent"}}}
    works = Works(tmp_path_factory.mktemp("refusing"), {"consumers": consumers}, lane="small")
    works.load([{"id": 1, "title": "a"}])
    return works


def test_names_are_what_spark_takes_them_for(refusing: Works) -> None:
    """A namespace in quotes is the current one like any other, and what is only read may have any name."""
    project = refusing.project
    before = refusing.snapshots()
    project.sql("CREATE NAMESPACE IF NOT EXISTS lake.`an-other`")
    moved = "USE `an-other`; CREATE TABLE IF NOT EXISTS mine (id int); INSERT INTO mine VALUES (1); "
    assert project.sql(moved + "SELECT id FROM mine").show().rows == ({"id": 1},)
    if not is_spark("3.5"):
        assert project.sql("SELECT title FROM IDENTIFIER('shop.' || 'works')").show().rows
        assert project.sql("DESCRIBE IDENTIFIER('shop.works')").show().rows
    kept = "CALL lake.system.expire_snapshots(table => concat('shop', '.works'), retain_last => 100)"
    assert project.sql(kept).show().rows
    assert project.sql("CALL lake.system.remove_orphan_files('shop.works')").show() is not None
    assert refusing.snapshots() == before


def test_session_is_left_where_it_was(refusing: Works) -> None:
    """Also in a namespace whose name needs quotes."""
    spark = refusing.project.engine.spark
    before = spark.catalog.currentCatalog()
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.`an-other`")
    spark.sql("USE lake.`an-other`")
    try:
        assert refusing.project.sql("SELECT count(*) AS n FROM shop.works").show().rows == ({"n": 1},)
        assert spark.catalog.currentDatabase() == "`an-other`"
    finally:
        spark.sql(f"USE {before}")


def test_mistakes_name_their_place(refusing: Works) -> None:
    """Nothing runs when a later statement cannot be parsed; line and column are those of the text."""
    before = refusing.snapshots()
    with pytest.raises(SqlInvalid) as invalid:
        refusing.project.sql("DELETE FROM shop.works;\n  SELECT 1 FORM x y")
    assert (invalid.value.line, invalid.value.column) == (2, 17)
    assert "near 'x'" in invalid.value.reason
    assert refusing.snapshots() == before
    with pytest.raises(SqlInvalid) as invalid:
        refusing.project.sql("SELECT 1;\nSELECT\n  nothing FROM shop.works")
    assert (invalid.value.line, invalid.value.column) == (3, 3)
    assert "`nothing`" in invalid.value.reason
    with pytest.raises(SqlInvalid) as invalid:
        refusing.project.sql("UPDATE shop.works SET title = nothing")
    assert "`nothing`" in invalid.value.reason
    with pytest.raises(SqlInvalid):
        refusing.project.sql(" ; -- nothing")
    with pytest.raises(EskerError, match="statement failed"):
        refusing.project.sql("SELECT 1 / (id - id) FROM shop.works").show()
    lease = held(refusing.project.state, f"{refusing.project.project.state_key}/works")
    with lease, pytest.raises(PipelineBusy):
        refusing.project.sql("DELETE FROM shop.works")


def test_other_tables_are_free(make_folder: Callable[..., Folder]) -> None:
    """A table that belongs to no pipeline is written to by Spark itself."""
    project = make_folder(pipelines={"sales": Folder.files_pipeline(table="shop.sales")}).open()
    project.load("sales", [{"id": 1, "amount": 1.5}, {"id": 2, "amount": 3.0}])
    project.sql("CREATE TABLE shop.own AS SELECT * FROM shop.sales; DELETE FROM shop.own WHERE id = 1")
    assert project.sql("SELECT id FROM shop.own").show().rows == ({"id": 2},)


def test_command(refusing: Works, tmp_path: Path) -> None:
    """The verb prints tables for people and one document for programs."""
    from typer.testing import CliRunner

    from esker.cli.main import app

    runner = CliRunner()
    here = ["--project", str(refusing.folder.path)]
    shown = runner.invoke(app, ["sql", "-c", "SELECT id, title FROM shop.works", *here])
    assert (shown.exit_code, "title" in shown.stdout) == (0, True)
    cut = runner.invoke(app, ["sql", "-c", "SELECT * FROM range(5)", "--limit", "2", *here])
    assert "the first 2 rows" in cut.stdout
    script = tmp_path / "script.sql"
    script.write_text("UPDATE shop.works SET title = 'z'; SELECT title FROM shop.works; SELECT nothing")
    failed = runner.invoke(app, ["sql", "-f", str(script), "--json", *here])
    document = json.loads(failed.stdout)
    assert (failed.exit_code, document["status"], document["error"]["code"]) == (2, "failed", "ESK-SQL-001")
    update, select = document["statements"]
    assert update["run"]["rows"]["updated"] == 1
    assert select["rows"] == [{"title": "z"}]
    assert [row[OP] for row in refusing.log()] == ["insert", "update"]
    assert runner.invoke(app, ["sql", *here]).exception is not None
