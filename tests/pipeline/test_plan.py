"""A plan is a value: it changes nothing, and a run does what it says."""

from __future__ import annotations

import json
from collections.abc import Callable

import duckdb
import pytest
from typer.testing import CliRunner

from esker.cli.main import app
from esker.errors import (
    ChangeNotApplied,
    ColumnsFrozen,
    InvalidRule,
    NoColumns,
    TypeConflict,
    UnknownPipeline,
)
from esker.pipeline.table_changes import AddColumns, CreateTable
from tests.contracts.folder import contract
from tests.folder import Folder

pytestmark = pytest.mark.spark


def test_plan_changes_nothing(folder: Folder) -> None:
    """Planning makes no table, loads no row, and gives the same again."""
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    [first] = folder.open().plan()
    [again] = folder.open().plan()
    assert not folder.open().engine.spark.catalog.tableExists("lake.shop.sales")
    assert [str(change) for change in first.changes] == ["create table shop.sales"]
    assert [str(change) for change in again.changes] == [str(change) for change in first.changes]
    assert [piece.summary for piece in again.slices] == ["1 file"]


def test_run_does_what_the_plan_says(make_folder: Callable[..., Folder]) -> None:
    """The created table has the plan's columns, partitions and properties; then nothing is left to do."""
    pipeline = Folder.files_pipeline(
        columns={
            "id": {"type": "bigint", "required": True, "doc": "it's the \\ key"},
            "day": "date",
            "extra": "array<struct<`odd name`: int>>",
        },
        partition_by=["bucket(4, id)", "month(day)", "truncate(2, name)"],
        properties={"write.parquet.compression-codec": "snappy"},
        format_version=3,
    )
    folder = make_folder(pipelines={"sales": pipeline})
    folder.write_csv(
        "landing/a.csv", ["day", "id", "name"], [("2026-01-02", 1, "one"), ("2026-03-04", 2, "two")]
    )
    [plan] = folder.open().plan()
    folder.run()
    report = folder.open().show("shop.sales")
    table = report.table
    assert isinstance(plan.changes[0], CreateTable)
    assert table.columns == plan.columns == plan.changes[0].table.columns
    assert [column.name for column in table.columns] == ["day", "id", "name", "extra"]
    assert table.columns[1].doc == "it's the \\ key"
    assert table.columns[1].required
    assert table.partition_fields == ("bucket(4, id)", "month(day)", "truncate(2, name)")
    assert table.properties["write.parquet.compression-codec"] == "snappy"
    assert table.properties["write.metadata.previous-versions-max"] == "100"
    assert table.format_version == 3
    [after] = folder.open().plan()
    assert after.is_empty


LAID_OUT = """
- {name: id, logicalType: integer, primaryKey: true, customProperties: [{property: bloomFilter, value: true}]}
- {name: country, logicalType: string, partitioned: true, partitionKeyPosition: 1}
- {name: born, logicalType: date, partitioned: true, partitionKeyPosition: 2, customProperties: [{property: partitionTransform, value: year}]}
- {name: month, logicalType: date, partitioned: true, partitionKeyPosition: 3, customProperties: [{property: partitionTransform, value: month}]}
- {name: at, logicalType: timestamp, partitioned: true, partitionKeyPosition: 4, customProperties: [{property: partitionTransform, value: day}, {property: sortPosition, value: 1}, {property: sortDirection, value: desc}]}
- {name: seen, logicalType: timestamp, partitioned: true, partitionKeyPosition: 5, customProperties: [{property: partitionTransform, value: hour}]}
- {name: name, logicalType: string, partitioned: true, partitionKeyPosition: 6, customProperties: [{property: partitionTransform, value: truncate(2)}]}
- {name: shop, logicalType: integer, partitioned: true, partitionKeyPosition: 7, customProperties: [{property: partitionTransform, value: bucket(4)}]}
"""  # noqa: E501
OF_TABLE = "compression: snappy, targetFileSize: 64MB, formatVersion: 3"


@pytest.mark.parametrize("lane", ["small", "large"])
def test_the_layout_of_a_contract(make_folder: Callable[..., Folder], lane: str) -> None:
    """Every transform, sort order, key, codec and Bloom filter is the table's, and its files'."""
    text = contract(LAID_OUT)
    custom = ", ".join(f"{{property: {p.replace(':', ', value:')}}}" for p in OF_TABLE.split(", "))
    folder = make_folder(
        pipelines={
            "sales": Folder.files_pipeline(contract="contracts/sales.odcs.yaml", mode="upsert", lane=lane)
        }
    )
    folder.write(
        "contracts/sales.odcs.yaml",
        text.replace("  - name: sales\n", f"  - name: sales\n    customProperties: [{custom}]\n"),
    )
    day, moment = "2026-01-02", "2026-01-02T03:04:05Z"
    header = ["id", "country", "born", "month", "at", "seen", "name", "shop"]
    folder.write_csv("landing/a.csv", header, [(n, "DE", day, day, moment, moment, "Ann", 7) for n in (1, 2)])
    folder.run()
    table = folder.open().show("shop.sales").table
    assert table.partition_fields == (
        "country",
        "year(born)",
        "month(month)",
        "day(at)",
        "hour(seen)",
        "truncate(2, name)",
        "bucket(4, shop)",
    )
    assert [str(field) for field in table.sort_fields] == ["at desc"]
    assert (table.identifier, table.format_version) == (("id",), 3)
    assert table.properties["write.target-file-size-bytes"] == "64000000"
    [file] = folder.open().engine.spark.table("lake.shop.sales.data_files").collect()
    path = file["file_path"].removeprefix("file:")
    written = duckdb.sql(
        f"SELECT path_in_schema, compression, bloom_filter_offset IS NOT NULL FROM parquet_metadata('{path}')"
    ).fetchall()
    assert {codec for _, codec, _ in written} == {"SNAPPY"}
    assert [name for name, _, has_filter in written if has_filter] == ["id"]
    assert folder.open().plan()[0].is_empty
    assert duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE id = 2").fetchall() == [(1,)]


@pytest.mark.parametrize("format", ["parquet", "avro", "orc"])
def test_every_file_format(make_folder: Callable[..., Folder], format: str) -> None:
    """Data files are of the declared format."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(format="csv") | {"format": format}})
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    assert folder.rows() == [(1,)]
    assert len(list(folder.path.glob(f".esker/warehouse/shop/sales/data/*.{format}"))) == 1


def test_applied_plan_makes_the_table_and_loads_nothing(folder: Folder) -> None:
    """`plan --apply` makes table changes only."""
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    opened = folder.open()
    opened.apply(opened.plan())
    assert folder.rows() == []
    assert folder.run().rows.inserted == 1


def test_new_column_is_planned_and_added(folder: Folder) -> None:
    """A column that the source sends for the first time is an addition; old rows read null."""
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    folder.write_csv("landing/b.csv", ["id", "note", "ID2"], [(2, "hello", 5)])
    [plan] = folder.open().plan()
    assert [str(change) for change in plan.changes] == ["add to table shop.sales: note string, ID2 bigint"]
    folder.run()
    assert folder.rows() == [(1, None, None), (2, "hello", 5)]


def test_frozen_table_refuses_columns_that_nobody_declared(folder: Folder) -> None:
    """With `evolution: freeze` an unknown column stops the run; nothing is dropped silently."""
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    folder.change(evolution="freeze")
    folder.write_csv("landing/b.csv", ["id", "note"], [(2, "hello")])
    with pytest.raises(ColumnsFrozen, match="note") as caught:
        folder.run()
    assert caught.value.exit_status == 3
    assert folder.rows() == [(1,)]


def test_declared_column_of_a_frozen_table_waits_for_apply(folder: Folder) -> None:
    """A declared addition is shown by `plan`, refused by `run`, and made by `plan --apply`."""
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    folder.change(evolution="freeze", columns={"note": "string"})
    folder.write_csv("landing/b.csv", ["id", "note"], [(2, "hello")])
    with pytest.raises(ChangeNotApplied, match="waits"):
        folder.run()
    opened = folder.open()
    plans = opened.plan()
    assert isinstance(plans[0].changes[0], AddColumns)
    opened.apply(plans)
    folder.run()
    assert folder.rows() == [(1, None), (2, "hello")]


def test_declared_type_that_the_table_does_not_have(folder: Folder) -> None:
    """A declaration that contradicts the table is an error, not a cast."""
    folder.write_csv("landing/a.csv", ["id"], [("x",)])
    folder.run()
    folder.change(columns={"id": {"type": "array<string>"}})
    with pytest.raises(TypeConflict, match="the project declares other types") as caught:
        folder.run()
    assert caught.value.reason == 'column "id" is string in the table and array<string> declared.'


def test_nothing_to_make_columns_from(folder: Folder) -> None:
    """A header without rows is nothing yet; rows without any value are an error."""
    folder.write_csv("landing/a.csv", ["id", "name"], [])
    result = folder.run()
    assert result.notes == ("the source holds no rows yet",)
    folder.write("landing/b.csv", "id,name\n,\n")
    with pytest.raises(NoColumns):
        folder.run()


def test_partitioning_that_differs_is_planned(folder: Folder) -> None:
    """A changed `partition_by` holds for new files; a second plan has nothing to do."""
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    folder.change(partition_by=["bucket(4, id)"])
    [plan] = folder.open().plan()
    assert [str(change) for change in plan.changes] == ["partition table shop.sales by bucket(4, id)"]
    folder.run()
    assert folder.open().plan()[0].is_empty


def test_unknown_pipeline_is_found_out_first(folder: Folder) -> None:
    """A misspelt name is an error with a guess."""
    with pytest.raises(UnknownPipeline) as caught:
        folder.open().plan(["sale"])
    assert "Did you mean sales?" in caught.value.remedy


def test_every_pipeline_is_planned_though_one_cannot(make_folder: Callable[..., Folder]) -> None:
    """All that is wrong is told at once, each with its pipeline; the status is theirs, or 1."""
    wrong = Folder.files_pipeline(contract="contracts/wrong.odcs.yaml")
    pipelines = {"wrong": {**wrong, "table": "shop.wrong"}, "sales": Folder.files_pipeline()}
    folder = make_folder(pipelines=pipelines)
    condition = "- {type: custom, engine: esker, name: mine, implementation: 'amout > 1'}"
    folder.write("contracts/wrong.odcs.yaml", contract("- {name: amount, logicalType: integer}", condition))
    folder.write_csv("landing/a.csv", ["amount"], [(1,)])
    plans = folder.open().plan()
    assert [(plan.pipeline, type(plan.error), plan.is_empty) for plan in plans] == [
        ("wrong", InvalidRule, False),
        ("sales", type(None), False),
    ]
    project = ["--project", str(folder.path)]
    shown = CliRunner().invoke(app, ["plan", "--apply", "wrong", "sales", *project])
    assert shown.exit_code == InvalidRule.exit_status
    assert "change: create table shop.sales" in shown.stdout
    assert "nothing to do" not in shown.stdout
    assert 'pipeline "wrong": contracts/wrong.odcs.yaml:11: rule "mine" cannot be checked' in shown.stderr
    assert "nothing was applied" in shown.stderr
    assert folder.open().metadata("shop.sales").stored is None
    document = json.loads(CliRunner().invoke(app, ["plan", "--json", *project]).stdout)
    assert document["error"]["code"] == InvalidRule.code
    assert [plan["error"] is None for plan in document["pipelines"]] == [False, True]
