"""What Esker's own Java class says of tables, and that it matches the source beside it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.create import NewTable, create
from esker.engine.iceberg.table import TABLE_DEFAULTS, TableId, find_table
from esker.engine.iceberg.table_metadata import PartitionPlace
from esker.engine.iceberg.table_state import compiled, shipped
from esker.engine.session import Engine
from esker.project.layout import parse_partition_field
from esker.project.types import Column, parse_type
from tests.folder import Folder

pytestmark = pytest.mark.spark
TABLE = TableId("lake", "shop.works")


def made(folder: Folder, *partition_by: str, **properties: str) -> tuple[Engine, Attempt]:
    engine = folder.open().engine
    engine.open_catalog("lake")
    columns = (Column("id", parse_type("bigint")), Column("at", parse_type("timestamp")))
    fields = tuple(map(parse_partition_field, partition_by))
    create(engine, NewTable(TABLE, columns, fields, {**TABLE_DEFAULTS, **properties}))
    return engine, Attempt(engine, TABLE)


def rows(*numbers: int) -> pa.Table:
    moments = pa.array([number * 10**12 for number in numbers], pa.timestamp("us", tz="UTC"))
    return pa.table({"id": pa.array(numbers, pa.int64()), "at": moments})


def test_the_classes_are_those_of_the_source(folder: Folder) -> None:
    """After a change of the source, `make java` compiles it."""
    found = compiled(folder.open().engine.spark.sparkContext._jvm)
    for name, content in found.items():
        assert content == shipped(name), f"{name} is not what its source says: run `make java`"


def test_a_table_is_described_as_it_is(folder: Folder) -> None:
    """Every fact that is read of a table, after a change of its columns, partitions and order, too."""
    engine, attempt = made(folder, "bucket(4, id)", "day(at)", **{"write.parquet.compression-codec": "gzip"})
    spark = engine.spark
    spark.sql("ALTER TABLE lake.shop.works DROP PARTITION FIELD days(at)")
    spark.sql("ALTER TABLE lake.shop.works WRITE LOCALLY ORDERED BY at DESC, id")
    spark.sql("ALTER TABLE lake.shop.works RENAME COLUMN at TO moment")
    spark.sql("INSERT INTO lake.shop.works VALUES (1, timestamp'2026-01-01')")
    spark.sql("ALTER TABLE lake.shop.works CREATE BRANCH other")
    spark.sql("ALTER TABLE lake.shop.works CREATE TAG kept")
    found = find_table(engine, TABLE)
    assert found is not None
    assert found.uuid == attempt.uuid
    assert [column.name for column in found.columns] == ["id", "moment"]
    assert found.partition_fields == ("bucket(4, id)",)
    assert [str(field) for field in found.sort_fields] == ["moment desc", "id"]
    assert sorted(found.specs) == [0, 1]
    assert found.specs[0].places == (
        PartitionPlace("id", "bucket[4]", "int"),
        PartitionPlace("moment", "day", "date"),
    )
    assert found.spec.places == found.specs[0].places[:1]
    assert found.properties["write.parquet.compression-codec"] == "gzip"
    assert found.branches == {"main", "other"}
    assert found.data_folder == f"{found.location}/data/"
    [snapshot] = spark.sql("SELECT * FROM lake.shop.works.snapshots").collect()
    assert found.snapshot is not None
    assert (found.snapshot.id, found.snapshot.parent) == (snapshot.snapshot_id, None)
    assert (found.snapshot.operation, found.snapshot.sequence) == ("append", 1)
    assert found.snapshot.summary == snapshot.summary
    assert found.snapshot.manifest_list == snapshot.manifest_list


@pytest.mark.parametrize(
    ("partition_by", "properties", "place"),
    [
        ((), {}, "/data/stem.parquet"),
        (("bucket(1, id)",), {}, "/data/id_bucket=0/stem.parquet"),
        ((), {"write.data.path": "file:///{scratch}/elsewhere"}, "/elsewhere/stem.parquet"),
        ((), {"write.object-storage.enabled": "true"}, "/stem.parquet"),
    ],
)
def test_files_lie_where_iceberg_puts_them(
    folder: Folder, partition_by: tuple[str, ...], properties: dict[str, str], place: str
) -> None:
    """Also where a property of the table names another folder, or one by a hash of the file's name."""
    scratch = str(folder.path).lstrip("/")
    properties = {name: value.replace("{scratch}", scratch) for name, value in properties.items()}
    engine, attempt = made(folder, *partition_by, **properties)
    staged = attempt.write(rows(1, 2), "stem")
    [(location, _)] = staged.places
    assert location.endswith(place)
    provider: Any = attempt._table.locationProvider()
    if not partition_by:
        assert location == provider.newDataLocation("stem.parquet")
    attempt.append(staged, {"esker.test": "yes"})
    attempt.set({"one": "1", "two": 'with "quotes", ünïcode and\nlines'})
    attempt.swap()
    again = Attempt(engine, TABLE)
    assert again.properties["two"] == 'with "quotes", ünïcode and\nlines'
    assert sorted(row.id for row in engine.spark.table(TABLE.sql).collect()) == [1, 2]


def test_a_snapshot_that_is_built_is_the_one_that_lands(folder: Folder) -> None:
    """Its id and sequence number stand in the ledger before the swap."""
    engine, attempt = made(folder)
    built = attempt.append(attempt.write(rows(1), "first"), {})
    assert attempt.built_records() == 1
    assert attempt.built_files() == 1
    attempt.swap()
    again = Attempt(engine, TABLE)
    assert (again.current, again.sequence) == built
    described = json.loads(again._state.describe())
    assert described["snapshot"]["summary"]["total-records"] == "1"
