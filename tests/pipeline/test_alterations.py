"""Tables that exist are altered as far as `evolution` allows; files and old snapshots stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.engine.iceberg.table import Table, TableId, load
from esker.errors import ChangeNotApplied, ColumnsFrozen, TypeConflict, UnsuitableKey
from esker.pipeline.table_changes import (
    AddColumns,
    DropColumns,
    IdentifyBy,
    ReorderColumns,
    Repartition,
    TableChange,
    WidenColumns,
)
from tests.folder import Folder

pytestmark = pytest.mark.spark

MakeFolder = Callable[..., Folder]


def keyed(make_folder: MakeFolder, **keys: Any) -> Folder:
    """A project whose table is loaded by key, so that it has a change log."""
    pipeline = Folder.files_pipeline("landing/*.parquet", "parquet", mode="upsert", key=["id"], **keys)
    return make_folder(pipelines={"sales": pipeline})


def deliver(folder: Folder, name: str, **columns: Any) -> None:
    pq.write_table(pa.table(columns), folder.path / "landing" / f"{name}.parquet")


def changes(folder: Folder) -> list[TableChange]:
    [plan] = folder.open().plan(["sales"])
    if plan.error is not None:
        raise plan.error
    return list(plan.changes)


def types(folder: Folder, table: str = "shop.sales") -> dict[str, str]:
    return dict(folder.open().table(table).dtypes)


def data_files(folder: Folder) -> set[Path]:
    return set((folder.path / ".esker/warehouse/shop/sales/data").rglob("*.parquet"))


def test_a_wider_type_in_the_source_widens_table_and_change_log(make_folder: MakeFolder) -> None:
    """int becomes bigint without rewriting a file; old and new values are there."""
    folder = keyed(make_folder)
    deliver(folder, "1", id=pa.array([1], pa.int32()), amount=pa.array([7], pa.int32()))
    folder.run()
    before = data_files(folder)
    deliver(folder, "2", id=pa.array([2], pa.int32()), amount=pa.array([2**40], pa.int64()))
    assert [type(change) for change in changes(folder)] == [WidenColumns, WidenColumns]
    folder.run()
    assert types(folder)["amount"] == types(folder, "shop.sales__changes")["amount"] == "bigint"
    assert folder.rows("shop.sales", "id", "amount") == [(1, 7), (2, 2**40)]
    assert before <= data_files(folder)
    deliver(folder, "3", id=pa.array([1], pa.int32()), amount=pa.array([7], pa.int32()))
    assert folder.run().rows.unchanged == 1


def test_a_new_column_takes_what_the_source_sends_inside(make_folder: MakeFolder) -> None:
    """A struct that is declared and sent for the first time, with further fields, is one column."""
    folder = keyed(make_folder)
    deliver(folder, "1", id=[1])
    folder.run()
    folder.change(columns={"place": "struct<city: string, n: int>"})
    deliver(folder, "2", id=[2], place=[{"city": "Ulm", "zip": "89073", "n": 2**40}])
    added, _ = changes(folder)
    assert str(added) == "add to table shop.sales: place struct<city:string,n:bigint,zip:string>"
    folder.run()
    assert types(folder)["place"] == "struct<city:string,n:bigint,zip:string>"
    assert folder.rows("shop.sales", "id", "place.zip") == [(1, None), (2, "89073")]


def test_a_frozen_table_is_not_widened(make_folder: MakeFolder) -> None:
    """The error names the column; nothing is changed."""
    folder = keyed(make_folder, evolution="freeze", columns={"id": "int", "amount": "int"})
    deliver(folder, "1", id=pa.array([1], pa.int32()), amount=pa.array([7], pa.int32()))
    folder.run()
    deliver(folder, "2", id=pa.array([2], pa.int32()), amount=pa.array([2**40], pa.int64()))
    with pytest.raises(ColumnsFrozen, match="amount"):
        folder.run()
    assert types(folder)["amount"] == "int"


def test_a_declared_rename_keeps_values_hash_and_log(make_folder: MakeFolder) -> None:
    """After it the same content is unchanged, and the log knows old and new rows by the new name."""
    folder = keyed(make_folder)
    deliver(folder, "1", id=[1, 2], amount=[7, 8])
    folder.run()
    folder.change(columns={"price": {"type": "bigint", "renamed_from": "amount"}})
    deliver(folder, "2", id=[1, 2], price=[7, 9])
    counts = folder.run().rows
    assert (counts.unchanged, counts.updated) == (1, 1)
    assert folder.rows("shop.sales", "id", "price") == [(1, 7), (2, 9)]
    assert folder.rows("shop.sales__changes", "id", "price") == [(1, 7), (2, 8), (2, 9)]
    assert changes(folder) == []


def test_columns_are_dropped_by_apply_only(make_folder: MakeFolder) -> None:
    """A run stops and says what to do; after it the old snapshot still shows the column."""
    folder = keyed(make_folder)
    deliver(folder, "1", id=[1], amount=[7], note=["x"])
    first = folder.run()
    folder.change(drop_columns=["note"])
    deliver(folder, "2", id=[2], amount=[8])
    with pytest.raises(ChangeNotApplied) as caught:
        folder.run()
    assert "note" in caught.value.reason
    project = folder.open()
    plans = project.plan(["sales"])
    assert DropColumns in [type(change) for change in plans[0].changes]
    project.apply(plans)
    folder.run()
    assert folder.rows("shop.sales", "*")[0][:2] == (1, 7)
    assert "note" not in types(folder)
    old = project.engine.spark.sql(f"SELECT note FROM lake.shop.sales VERSION AS OF {first.snapshot_id}")
    assert [row.note for row in old.collect()] == ["x"]


def test_a_column_that_comes_back_with_another_type(make_folder: MakeFolder) -> None:
    """The log keeps what it was under another name: nobody could take it out there, and runs would stop."""
    folder = keyed(make_folder)
    deliver(folder, "1", id=[1], note=[7])
    folder.run()
    folder.change(drop_columns=["note"])
    project = folder.open()
    project.apply(project.plan(["sales"]))
    deliver(folder, "2", id=[2], amount=[8])
    folder.run()
    del folder.document["pipelines"]["sales"]["drop_columns"]
    folder.save()
    for number, note in ((3, "x"), (4, "y")):
        deliver(folder, str(number), id=[number], note=[note])
        assert folder.run().rows.inserted == 1
    assert folder.rows("shop.sales", "id", "note") == [(1, None), (2, None), (3, "x"), (4, "y")]
    told = folder.rows("shop.sales__changes", "id", "note", "note__1")
    assert told == [(1, None, 7), (2, None, None), (3, "x", None), (4, "y", None)]
    assert changes(folder) == []


def test_new_columns_can_be_left_out(make_folder: MakeFolder) -> None:
    """`discard_column` loads the rest and says what it left out."""
    folder = keyed(make_folder, evolution="discard_column", columns={"id": "bigint", "amount": "bigint"})
    deliver(folder, "1", id=[1], amount=[7])
    folder.run()
    deliver(folder, "2", id=[2], amount=[8], note=["x"])
    result = folder.run()
    assert folder.rows("shop.sales", "id", "amount") == [(1, 7), (2, 8)]
    assert any("note" in note for note in result.notes)
    assert "note" not in types(folder)


def test_a_requirement_is_taken_back_in_so_many_words(make_folder: MakeFolder) -> None:
    """`required: false` makes an existing column optional."""
    folder = keyed(make_folder, columns={"amount": {"type": "bigint", "required": True}})
    deliver(folder, "1", id=[1], amount=[7])
    folder.run()
    folder.change(columns={"amount": {"type": "bigint", "required": False}})
    deliver(folder, "2", id=[2], amount=pa.array([None], pa.int64()))
    folder.run()
    assert folder.rows("shop.sales", "id", "amount") == [(1, 7), (2, None)]


def test_another_partitioning_holds_for_new_files(make_folder: MakeFolder) -> None:
    """Rows of old and new files are updated all the same: one row per key."""
    folder = keyed(make_folder)
    deliver(folder, "1", id=[1, 2], amount=[7, 8])
    folder.run()
    folder.change(partition_by=["bucket(4, id)"])
    deliver(folder, "2", id=[2, 3], amount=[80, 9])
    assert [type(change) for change in changes(folder)] == [Repartition]
    folder.run()
    assert changes(folder) == []
    folder.change(partition_by=["truncate(10, amount)"])
    deliver(folder, "3", id=[1, 3], amount=[70, 90])
    folder.run()
    assert folder.rows("shop.sales", "id", "amount") == [(1, 70), (2, 80), (3, 90)]


def test_what_cannot_be_widened_is_a_conflict(make_folder: MakeFolder) -> None:
    """The table keeps its column, and the error names both types."""
    folder = keyed(make_folder)
    deliver(folder, "1", id=[1], amount=[7])
    folder.run()
    deliver(folder, "2", id=[2], amount=["eight"])
    with pytest.raises(TypeConflict) as caught:
        folder.run()
    assert "bigint" in str(caught.value.reason) + str(caught.value)


def newest_file(folder: Folder, before: set[Path]) -> list[Any]:
    """Return the ids of the one file that came, in the order in which they stand there."""
    [path] = data_files(folder) - before
    return list(pq.read_table(path).column("id").to_pylist())


@pytest.mark.parametrize("lane", ["small", "large"])
def test_files_are_sorted_as_declared(make_folder: MakeFolder, lane: str) -> None:
    """By key unless told otherwise; a changed `sort_by` holds for new files, and is planned once."""
    folder = keyed(make_folder, lane=lane)
    deliver(folder, "1", id=pa.array([3, 1, 2]), v=pa.array(["b", "c", "a"]))
    created = changes(folder)[0].as_json()
    assert created["sort_by"] == ["id"]
    folder.run()
    assert folder.open().show("shop.sales").as_json()["sort_by"] == ["id"]
    assert newest_file(folder, set()) == [1, 2, 3]
    before = data_files(folder)
    folder.change(sort_by=["v desc", "id"])
    deliver(folder, "2", id=pa.array([14, 12, 11, 13]), v=pa.array(["b", "a", "c", "b"]))
    assert [str(change) for change in changes(folder)] == ["sort table shop.sales by v desc, id"]
    folder.run()
    assert changes(folder) == []
    assert newest_file(folder, before) == [11, 13, 14, 12]
    assert before <= data_files(folder)
    folder.change(sort_by=["nothing"])
    with pytest.raises(UnsuitableKey, match="sort_by"):
        changes(folder)


def test_rows_without_a_key_are_sorted_within_their_partitions(make_folder: MakeFolder) -> None:
    """Sort order and partitioning together: one file each, sorted."""
    pipeline = Folder.files_pipeline(partition_by=["v"], sort_by=["id desc"])
    folder = make_folder(pipelines={"sales": pipeline})
    folder.write_csv("landing/a.csv", ["id", "v"], [(i, "ab"[i % 2]) for i in (3, 1, 4, 2, 6, 5)])
    folder.run()
    read = [pq.ParquetFile(path).read().column("id").to_pylist() for path in data_files(folder)]
    assert sorted(read) == [[5, 3, 1], [6, 4, 2]]


def test_a_plan_tells_what_partitions_cost(make_folder: MakeFolder) -> None:
    """Buckets multiply files; a column with many values makes as many partitions."""
    folder = keyed(make_folder, partition_by=["bucket(100, id)", "v"])
    deliver(folder, "1", id=pa.array(range(3000)), v=pa.array([f"{i}" for i in range(3000)]))
    notes = folder.open().plan(["sales"])[0].notes
    assert any("up to 100 data files and as many files of deletes" in note for note in notes)
    assert any("each gets a partition" in note for note in notes)
    folder.change(partition_by=["id"])
    assert "every key gets a partition of its own" in str(folder.open().plan(["sales"])[0].notes)


def stored(folder: Folder, table: str = "shop.sales") -> Table:
    engine = folder.open().engine
    engine.open_catalog("lake")
    return load(engine, TableId("lake", table))


def test_a_key_identifies_rows_without_a_contract(make_folder: MakeFolder) -> None:
    """Other engines and readers see which columns identify a row; rows without a key are still set aside."""
    folder = keyed(make_folder)
    deliver(folder, "1", id=pa.array([1, None], pa.int64()), title=["a", "b"])
    assert folder.run().rows.quarantined == 1
    assert stored(folder).identifier == ("id",)
    assert stored(folder, "shop.sales__changes").identifier == ()
    deliver(folder, "2", id=pa.array([None, 1, 2], pa.int64()), title=["c", "d", "e"])
    assert changes(folder) == []
    result = folder.run()
    assert (result.rows.quarantined, result.rows.updated, result.rows.inserted) == (1, 1, 1)
    assert folder.rows("shop.sales", "id", "title") == [(1, "d"), (2, "e")]


def test_a_key_of_a_table_that_knew_none(make_folder: MakeFolder) -> None:
    """Columns that may be empty cannot identify rows, and stay so; required ones do from the next run on."""
    folder = keyed(make_folder)
    engine = folder.open().engine
    engine.open_catalog("lake")
    engine.spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    engine.spark.sql("CREATE TABLE lake.shop.sales (id bigint, title string) USING iceberg")
    deliver(folder, "1", id=[1], title=["a"])
    folder.run()
    assert stored(folder).identifier == ()
    engine.spark.sql("DROP TABLE lake.shop.sales")
    engine.spark.sql("DROP TABLE lake.shop.sales__changes")
    engine.spark.sql("CREATE TABLE lake.shop.sales (id bigint NOT NULL, title string) USING iceberg")
    assert IdentifyBy in [type(change) for change in changes(folder)]
    folder.run()
    assert stored(folder).identifier == ("id",)


def test_a_key_that_becomes_shorter_and_another_mode(make_folder: MakeFolder) -> None:
    """What identified rows until now can be empty, or is dropped: Iceberg would refuse both before."""
    folder = keyed(make_folder)
    folder.change(key=["id", "line", "part"])
    deliver(folder, "1", id=[1], line=[1], part=[1], title=["a"])
    folder.run()
    assert set(stored(folder).identifier) == {"id", "line", "part"}
    assert changes(folder) == []
    free = {"type": "bigint", "required": False}
    folder.change(key=["id"], columns={"line": free}, drop_columns=["part"])
    project = folder.open()
    project.apply(project.plan(["sales"]))
    table = stored(folder)
    assert table.identifier == ("id",)
    assert table.properties["esker.identifier.sales"] == '["id"]'
    assert [column.required for column in table.columns if column.name == "line"] == [False]
    deliver(folder, "2", id=[1, 2], line=pa.array([None, 2], pa.int64()), title=["b", "c"])
    folder.run()
    assert folder.rows("shop.sales", "id", "line", "title") == [(1, None, "b"), (2, 2, "c")]
    folder.change(mode="delete_insert")
    folder.run()
    assert stored(folder).identifier == ()
    assert "esker.identifier.sales" not in stored(folder).properties
    assert changes(folder) == []


@pytest.mark.parametrize("mode", ["delete_insert", "scd2"])
def test_a_key_of_several_rows_identifies_none(make_folder: MakeFolder, mode: str) -> None:
    folder = keyed(make_folder)
    folder.change(mode=mode)
    deliver(folder, "1", id=[1], title=["a"])
    folder.run()
    assert stored(folder).identifier == ()


def test_columns_are_ordered_as_declared_when_the_order_counts(make_folder: MakeFolder) -> None:
    """Only with column_order: declared. Rows, hashes and files stay; what is added comes in its place."""
    folder = keyed(make_folder)
    deliver(folder, "1", id=[1, 2], title=["a", "b"], city=["x", "y"])
    folder.run()
    columns = {"city": {"type": "string"}, "id": {"type": "bigint"}, "title": {"type": "string"}}
    folder.change(columns=columns, evolution="freeze")
    assert changes(folder) == []
    folder.change(
        column_order="declared", columns={"city": {"type": "string"}, "zip": {"type": "int"}, **columns}
    )
    before = data_files(folder)
    deliver(folder, "2", id=[1, 2], title=["a", "c"], city=["x", "y"])
    assert [type(change) for change in changes(folder)][:2] == [AddColumns, ReorderColumns]
    with pytest.raises(ChangeNotApplied) as caught:
        folder.run()
    assert "order the columns of table shop.sales: city, zip, id, title" in caught.value.reason
    project = folder.open()
    project.apply(project.plan(["sales"]))
    assert [column.name for column in stored(folder).columns][:4] == ["city", "zip", "id", "title"]
    assert before == data_files(folder)
    result = folder.run()
    assert (result.rows.unchanged, result.rows.updated) == (1, 1)
    assert folder.rows("shop.sales", "id", "title", "city", "zip") == [
        (1, "a", "x", None),
        (2, "c", "y", None),
    ]
    assert changes(folder) == []


def test_a_new_table_is_ordered_as_declared(make_folder: MakeFolder) -> None:
    folder = keyed(make_folder, column_order="declared", columns={"title": {"type": "string"}})
    deliver(folder, "1", id=[1], title=["a"])
    folder.run()
    assert [column.name for column in stored(folder).columns][:2] == ["title", "id"]
    assert changes(folder) == []


def test_properties_follow_the_project(make_folder: MakeFolder) -> None:
    """Those that change are set, those that are gone are removed, and those of others stay."""
    folder = keyed(
        make_folder, properties={"write.metadata.metrics.max-inferred-column-defaults": "50", "a": "1"}
    )
    deliver(folder, "1", id=[1])
    folder.run()
    assert changes(folder) == []
    sql = folder.open().engine.spark.sql
    sql("ALTER TABLE lake.shop.sales SET TBLPROPERTIES ('owner.team' = 'them')")
    folder.change(properties={"a": "2", "b": "3"})
    [change] = changes(folder)
    assert str(change) == (
        "set properties of table shop.sales: a = 2, b = 3, "
        "write.metadata.metrics.max-inferred-column-defaults is removed"
    )
    folder.run()
    assert changes(folder) == []
    found = stored(folder).properties
    assert (found["a"], found["b"], found["owner.team"]) == ("2", "3", "them")
    assert "write.metadata.metrics.max-inferred-column-defaults" not in found
    folder.change(properties={})
    folder.run()
    assert not {"a", "b"} & stored(folder).properties.keys()
    assert changes(folder) == []


def test_properties_of_a_table_of_an_earlier_version(make_folder: MakeFolder) -> None:
    """Which properties were set is written down first; from then on they can be removed."""
    folder = keyed(make_folder, properties={"a": "1"})
    deliver(folder, "1", id=[1])
    folder.run()
    sql = folder.open().engine.spark.sql
    sql("ALTER TABLE lake.shop.sales UNSET TBLPROPERTIES ('esker.properties.sales')")
    assert [str(change) for change in changes(folder)] == [
        "write down what the project sets in table shop.sales"
    ]
    folder.run()
    folder.change(properties={})
    folder.run()
    assert "a" not in stored(folder).properties
