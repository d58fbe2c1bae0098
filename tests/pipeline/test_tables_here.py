"""What this process tells of tables is what Spark tells; what it cannot tell alike it leaves to Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from esker.engine.iceberg.document import Undecided
from esker.engine.iceberg.table_id import TableId
from esker.errors import NoQuality, UnknownPoint
from esker.pipeline.quarantine import Choice
from esker.pipeline.running import RunningProject
from esker.pipeline.show import TableReport, show_table
from esker.pipeline.tables_by_spark import TablesBySpark
from esker.pipeline.tables_here import TablesHere
from esker.reading.documents import Documents
from tests.cli.terminal import environment
from tests.contracts.folder import MakeFolder, contract, contract_folder
from tests.folder import Folder
from tests.no_java import WATCHED, FakeJava

pytestmark = pytest.mark.spark

TYPES = (
    "a boolean, b int, c bigint, d float, e double, f decimal(20,5), g date, h timestamp, i timestamp_ntz, "
    "j string, k binary"
)
VALUES = [
    "true, 1, 1, 1.5, 1.5, 1.5, date '2026-01-01', timestamp '2026-01-01 10:00:00.120', "
    "timestamp_ntz '1969-12-31 23:59:59.999999', 'ä☃ and more than sixteen', X'41'",
    "false, -5, -9223372036854775808, float('-1e-10'), 1.0E10, -0.00001, date '0999-12-31', "
    "timestamp '1800-01-01 00:00:00', timestamp_ntz '2026-01-01 00:00:00', '', X'4142'",
    "null, null, null, null, null, null, null, null, null, null, null",
    "true, 2147483647, 7, float('NaN'), double('-Infinity'), 99999.99999, date '9999-12-31', "
    "timestamp '9999-12-31 23:59:59', timestamp_ntz '2000-02-29 12:00:00', 'z', null",
    "true, 3, 7, 16777216.0, 1234567.125, 0, date '2026-01-01', timestamp '2026-01-01 00:00:00', "
    "null, 'b', X'00'",
]
MAKE: dict[str, list[str]] = {
    "empty": [f"CREATE TABLE {{t}} ({TYPES}) USING iceberg"],
    "one file": [f"CREATE TABLE {{t}} ({TYPES}) USING iceberg", f"INSERT INTO {{t}} VALUES ({VALUES[0]})"],
    "types": [
        f"CREATE TABLE {{t}} ({TYPES}) USING iceberg",
        *(f"INSERT INTO {{t}} VALUES ({values})" for values in (*VALUES[:1], *VALUES[2:])),
    ],
    "deleted rows": [
        "CREATE TABLE {t} (id int, text string) USING iceberg PARTITIONED BY (bucket(2, id)) "
        "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')",
        "INSERT INTO {t} SELECT CAST(id AS INT), CAST(id AS STRING) FROM range(50)",
        "DELETE FROM {t} WHERE id % 3 = 0",
        "DELETE FROM {t} WHERE id % 5 = 0",
    ],
    "deletion vectors": [
        "CREATE TABLE {t} (id int, text string) USING iceberg "
        "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'format-version' = '3')",
        "INSERT INTO {t} SELECT CAST(id AS INT), CAST(id AS STRING) FROM range(50)",
        "DELETE FROM {t} WHERE id < 45",
    ],
    "nested": [
        "CREATE TABLE {t} (id int, s struct<a: int, b: struct<c: timestamp>>, tags array<string>, "
        "m map<string, array<date>>) USING iceberg",
        "INSERT INTO {t} VALUES (1, null, array('a', null), map('k', array(date '2026-01-01'))), "
        "(2, named_struct('a', 1, 'b', named_struct('c', timestamp '2026-01-01 00:00:00')), null, map())",
    ],
    "renamed": [
        "CREATE TABLE {t} (id int, day date, old string) USING iceberg PARTITIONED BY (day)",
        "INSERT INTO {t} VALUES (1, date '2026-01-01', 'x'), (2, null, 'y')",
        "ALTER TABLE {t} RENAME COLUMN old TO `new name`",
        "ALTER TABLE {t} ALTER COLUMN id TYPE bigint",
        "ALTER TABLE {t} ALTER COLUMN `new name` FIRST",
    ],
    "branches": [
        "CREATE TABLE {t} (id int) USING iceberg",
        "INSERT INTO {t} VALUES (1)",
        "ALTER TABLE {t} CREATE BRANCH side",
        "INSERT INTO {t}.branch_side VALUES (2)",
        "INSERT INTO {t} VALUES (3)",
        "CALL lake.system.rewrite_data_files(table => 'shop.odd', options => map('rewrite-all', 'true'))",
    ],
}
LEFT: dict[str, list[str]] = {
    "orc": [
        "CREATE TABLE {t} (id int) USING iceberg TBLPROPERTIES ('write.format.default' = 'orc')",
        "INSERT INTO {t} VALUES (1)",
    ],
    "avro": [
        "CREATE TABLE {t} (id int) USING iceberg TBLPROPERTIES ('write.format.default' = 'avro')",
        "INSERT INTO {t} VALUES (1)",
    ],
    "metrics": [
        "CREATE TABLE {t} (id int) USING iceberg TBLPROPERTIES ('write.metadata.metrics.column.id' = 'none')",
        "INSERT INTO {t} VALUES (1)",
    ],
    "many columns": [
        f"CREATE TABLE {{t}} ({', '.join(f'c{n} int' for n in range(101))}) USING iceberg",
    ],
    "old moments": [
        f"CREATE TABLE {{t}} ({TYPES}) USING iceberg",
        f"INSERT INTO {{t}} VALUES ({VALUES[1]})",
        "INSERT INTO {t} (h) VALUES (timestamp '0999-12-31 00:00:00')",
    ],
}


def made(make_folder: MakeFolder, statements: list[str]) -> Folder:
    folder = make_folder()
    engine = folder.open().engine
    engine.open_catalog("lake")
    engine.spark.sql("CREATE NAMESPACE lake.shop")
    for statement in statements:
        engine.spark.sql(statement.format(t="lake.shop.odd")).collect()
    return folder


def both(folder: Folder, table: str, limit: int) -> tuple[TableReport, TableReport]:
    """Return the report of this process and that of Spark."""
    opened, id = folder.open(), TableId("lake", table)
    here = show_table(TablesHere(Documents(opened.project)), id, limit=limit)
    return here, show_table(TablesBySpark(opened.engine), id, limit=limit)


def told(report: TableReport, *, rows: bool) -> dict[str, Any]:
    document = report.as_json()
    document["rows"] = sorted(map(repr, document["rows"])) if rows else len(document["rows"])
    return document


@pytest.mark.parametrize("kind", MAKE)
def test_it_tells_what_spark_tells(make_folder: MakeFolder, kind: str) -> None:
    """Figures, bounds as texts, history and rows, with the types of Python that Spark gives."""
    folder = made(make_folder, MAKE[kind])
    here, by_spark = both(folder, "shop.odd", 100)
    assert told(here, rows=True) == told(by_spark, rows=True)
    few, other = both(folder, "shop.odd", 1)
    assert told(few, rows=False) == told(other, rows=False)
    assert all(row in here.rows for row in few.rows)
    nothing, other = both(folder, "shop.odd", 0)
    assert nothing.rows == other.rows == []


@pytest.mark.parametrize("kind", LEFT)
def test_what_is_left_to_spark(make_folder: MakeFolder, kind: str) -> None:
    """People get Spark's answer, without asking for it."""
    folder = made(make_folder, LEFT[kind])
    opened = folder.open()
    with pytest.raises(Undecided):
        show_table(TablesHere(Documents(opened.project)), TableId("lake", "shop.odd"))
    expected = show_table(TablesBySpark(opened.engine), TableId("lake", "shop.odd"))
    asked = folder.open()
    assert told(asked.show("shop.odd"), rows=True) == told(expected, rows=True)
    assert asked._is_started


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"mode": "upsert", "key": ["id"], "partition_by": ["bucket(2, id)"], "deletes": "soft"},
        {"mode": "scd2", "key": ["id"], "format_version": 3},
    ],
)
def test_tables_of_pipelines(make_folder: MakeFolder, keys: dict[str, Any]) -> None:
    """Lineage, tables beside it and Esker's own columns are told alike."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(**keys)})
    for number in range(2):
        folder.write_csv(
            f"landing/{number}.csv", ["id", "note"], [(n, f"{number}") for n in range(number, 5)]
        )
        folder.run()
    here, by_spark = both(folder, "shop.sales", 100)
    assert told(here, rows=True) == told(by_spark, rows=True)
    assert here.metadata.as_json() == by_spark.metadata.as_json()
    asked = folder.open()
    assert told(asked.show("shop.sales", limit=100), rows=True) == told(here, rows=True)
    assert not asked._is_started


def test_plans_of_what_did_not_change(make_folder: MakeFolder) -> None:
    """A plan without Spark is the plan with Spark; as soon as one pipeline has work, Spark plans all."""
    pipelines = {
        "sales": Folder.files_pipeline(readers=["trino", "duckdb"]),
        "more": Folder.files_pipeline("more/*.csv", table="shop.more", mode="upsert", key=["id"]),
    }
    folder = make_folder(pipelines=pipelines)
    folder.write_csv("landing/a.csv", ["id", "a_map"], [(1, "x")])
    folder.write_csv("more/a.csv", ["id"], [(1,)])
    folder.open().run_all()
    asked, by_spark = folder.open(), folder.open()
    by_spark._start()
    assert asked.plan() == by_spark.plan()
    assert not asked._is_started
    assert [plan.is_empty for plan in asked.plan()] == [True, True]
    assert RunningProject(asked.project).plan(["more"]) == by_spark.plan(["more"])
    folder.write_csv("more/b.csv", ["id"], [(2,)])
    assert [plan.is_empty for plan in asked.plan()] == [True, False]
    assert asked._is_started


@pytest.mark.process
@pytest.mark.parametrize(
    "verb", [["show", "shop.sales"], ["plan"], ["quality", "shop.sales"], ["quarantine", "list"]]
)
def test_no_java_is_started(make_folder: Callable[..., Folder], tmp_path: Path, verb: list[str]) -> None:
    folder = make_folder()
    folder.write_csv("landing/a.csv", ["id", "note"], [(1, "x")])
    folder.run()
    fake = FakeJava(tmp_path / "java")
    ended = subprocess.run(
        [sys.executable, "-c", WATCHED, *verb, "--json", "--project", str(folder.path)],
        env=environment(fake.environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)
    watched = json.loads(ended.stderr.splitlines()[-1])
    assert watched["started"] == []
    # Arrow looks for pandas when the record of loaded files is read.
    assert set(watched["heavy"]) <= {"pandas"}
    assert not fake.was_started


@pytest.mark.parametrize("mode", [{}, {"mode": "upsert", "key": ["id"]}])
def test_quality_and_quarantine(make_folder: MakeFolder, mode: dict[str, Any]) -> None:
    """What checks found, at any point, and what waits: as Spark reads it, and without Spark."""
    text = contract(
        """
        - {name: id, logicalType: integer, required: true}
        - {name: amount, logicalType: number, physicalType: "decimal(9,2)", logicalTypeOptions: {minimum: 0}}
        """,
        "- {metric: rowCount, mustBeGreaterThan: 0, name: filled}",
    )
    folder = contract_folder(make_folder, text, **mode)
    asked = folder.open()
    with pytest.raises(NoQuality):
        asked.quality("shop.sales")
    for number in range(3):
        bad = [(-n, "-1") for n in range(1, number + 2)]
        folder.write_csv(f"landing/{number}.csv", ["id", "amount"], [(number, "1"), ("x", "2"), *bad])
        folder.run()
    asked, by_spark = folder.open(), folder.open()
    by_spark._start()
    for points in ((None, None), ("2", None), ("3", "1"), ("2026-01-01", None), ("2", "2100-01-01T00:00")):
        for held in (False, True):
            expected = by_spark.quality("shop.sales", *points, held=held)
            assert asked.quality("shop.sales", *points, held=held) == expected
    assert asked.quality("shop.sales")
    assert len(asked.quarantined()) == 2
    assert asked.quarantined() == by_spark.quarantined()
    by_spark.discard("sales", Choice(rule="amount.minimum", changeset=2))
    assert asked.quarantined() == by_spark.quarantined()
    assert not asked._is_started
    with pytest.raises(UnknownPoint):
        asked.quality("shop.sales", "yesterday")


def test_counts_of_a_table_without_a_contract(make_folder: MakeFolder) -> None:
    folder = made(make_folder, MAKE["deleted rows"])
    asked, by_spark = folder.open(), folder.open()
    by_spark._start()
    assert asked.quality("shop.odd") == by_spark.quality("shop.odd") != []
    assert not asked._is_started
