"""Rows of a table by filter, time range and columns. Files without a wanted row are not opened.

The tables here are written by PyIceberg: nothing in this file needs Spark, but for the last tests.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform, IdentityTransform, VoidTransform
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.table import TableId
from esker.errors import NotWithoutSpark, ReaderNotInstalled, ScanInvalid, TableNotFound, UnknownPoint
from esker.pipeline.reading import ReadingProject
from esker.reading.planned import files_at, parts_of
from esker.reading.pruning import Pruning
from esker.reading.scan import TableScan
from tests.folder import Folder
from tests.load.works import WORKS, Make
from tests.reading.deletes_by_value import delete_by_value
from tests.reading.watching import data_files, manifests_among, opened_files

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "modified_time", TimestamptzType(), required=False),
    NestedField(3, "local", TimestampType(), required=False),
    NestedField(4, "day", DateType(), required=False),
    NestedField(5, "title", StringType(), required=False),
    NestedField(6, "amount", DecimalType(12, 2), required=False),
    NestedField(7, "weight", DoubleType(), required=False),
    NestedField(8, "deleted", BooleanType(), required=False),
    NestedField(
        9, "place", StructType(NestedField(10, "town", StringType(), required=False)), required=False
    ),
    NestedField(11, "tags", ListType(12, StringType(), element_required=False), required=False),
)
BY_DAY = PartitionSpec(PartitionField(2, 1000, DayTransform(), "modified_day"))
FIRST = datetime(2026, 11, 1, tzinfo=UTC)
Row = dict[str, Any]


def row(number: int) -> Row:
    """Return a row, some hours after the one before."""
    moment = FIRST + timedelta(hours=5 * number)
    return {
        "id": number,
        "modified_time": None if number == 7 else moment,
        "local": None if number == 8 else moment.replace(tzinfo=None),
        "day": moment.date(),
        "title": None if number % 5 == 0 else f"title {number:02}",
        "amount": Decimal(number - 6) / 4,
        "weight": float("nan") if number == 4 else number / 2,
        "deleted": number % 4 == 0,
        "place": None if number == 3 else {"town": "Ulm" if number % 2 else "Bonn"},
        "tags": [str(number)],
    }


ROWS = [row(number) for number in range(24)]


def arrow(rows: Sequence[Row], schema: Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema_to_pyarrow(schema, include_field_ids=False))


Shelf = tuple[ReadingProject, Table]


@pytest.fixture
def make_table(tmp_path: Path) -> Callable[..., Shelf]:
    """Return what makes a table `shop.works` that PyIceberg wrote, each list of rows as an append."""

    def make(*appends: Sequence[Row], spec: PartitionSpec = BY_DAY, schema: Schema = SCHEMA) -> Shelf:
        Folder(tmp_path, catalog={"type": "sqlite", "path": "lake.db", "warehouse": "wh"})
        where = {"uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": f"file://{tmp_path}/wh"}
        catalog = load_catalog("lake", type="sql", **where)
        catalog.create_namespace("shop")
        table = catalog.create_table("shop.works", schema, partition_spec=spec)
        for rows in appends:
            table.append(arrow(rows, schema))
        return ReadingProject.at(tmp_path), table

    return make


def ids(scan: TableScan) -> list[int]:
    return sorted(scan.to_arrow().column("id").to_pylist())


def test_the_last_quarter_of_an_hour(make_table: Callable[..., Shelf]) -> None:
    """Rows whose time lies in [start, end), as Polars, with two columns: one file of one day is opened."""
    project, _ = make_table(ROWS)
    with opened_files() as opened:
        found = project.scan(
            "shop.works",
            columns=["title", "id"],
            time_column="modified_time",
            start="2026-11-02T06:00",
            end=datetime(2026, 11, 2, 11, tzinfo=UTC),
        )
        assert found.to_polars().rows() == [("title 06", 6)]
    assert found.schema.names == ["title", "id"]
    assert len(data_files(opened)) == 1
    assert data_files(opened) == found.files


@pytest.mark.parametrize("column", ["modified_time", "local"])
@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2026-11-01T05:00", "2026-11-01T15:00", [1, 2]),
        ("2026-11-01T05:00:00.000001", "2026-11-01T15:00:00.000001", [2, 3]),
        ("2026-11-01T06:00+01:00", "2026-11-01T15:00Z", [1, 2]),
        (datetime(2026, 11, 1, 5), datetime(2026, 11, 1, 10, tzinfo=timezone(timedelta(hours=5))), []),
        (date(2026, 11, 5), None, [20, 21, 22, 23]),
        (None, date(2026, 11, 2), [0, 1, 2, 3, 4]),
        ("2026-11-02", "2026-11-02", []),
    ],
)
def test_time_ranges(
    make_table: Callable[..., Shelf], column: str, start: Any, end: Any, expected: list[int]
) -> None:
    """The start is included, the end is not; a time without a zone is UTC, also beside a column without."""
    project, _ = make_table(ROWS)
    assert ids(project.scan("shop.works", time_column=column, start=start, end=end)) == expected


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2026-11-02", "2026-11-03", [5, 6, 7, 8, 9]),
        ("2026-11-01T00:00:01", "2026-11-02T00:01", [5, 6, 7, 8, 9]),
    ],
)
def test_a_range_of_days(make_table: Callable[..., Shelf], start: str, end: str, expected: list[int]) -> None:
    """A day is its midnight."""
    project, _ = make_table(ROWS)
    assert ids(project.scan("shop.works", time_column="day", start=start, end=end)) == expected


FILTERS: list[tuple[str, Callable[[Row], object]]] = [
    ("id = 5 OR id >= 20 AND NOT id = 22", lambda r: r["id"] == 5 or (r["id"] >= 20 and r["id"] != 22)),
    ("id IN (1, 2, 99) AND title IS NOT NULL", lambda r: r["id"] in (1, 2)),
    ("title LIKE 'title 1%'", lambda r: (r["title"] or "").startswith("title 1")),
    ("title NOT IN ('title 01', 'title 02')", lambda r: r["title"] not in (None, "title 01", "title 02")),
    ("title != 'title 01'", lambda r: r["title"] not in (None, "title 01")),
    ("amount > 1.5", lambda r: r["amount"] > Decimal("1.5")),
    ("amount <= -1", lambda r: r["amount"] <= -1),
    ("amount < 99999999999", lambda r: True),
    ("amount > 99999999999.5", lambda r: False),
    ("weight > 3", lambda r: r["weight"] > 3),
    ("weight IS NAN", lambda r: r["weight"] != r["weight"]),
    ("deleted = true AND id < 9", lambda r: r["deleted"] and r["id"] < 9),
    ("place.town = 'Ulm'", lambda r: (r["place"] or {}).get("town") == "Ulm"),
    ("place IS NULL", lambda r: r["place"] is None),
    ("modified_time BETWEEN '2026-11-01T05:00' AND '2026-11-01 10:00+00:00'", lambda r: r["id"] in (1, 2)),
    ("modified_time IS NULL", lambda r: r["id"] == 7),
    ("day = '2026-11-02'", lambda r: r["day"] == date(2026, 11, 2)),
    ("\"id\" = '3'", lambda r: r["id"] == 3),
    ("true", lambda r: True),
    ("id = 99", lambda r: False),
]


@pytest.mark.parametrize("spec", [BY_DAY, UNPARTITIONED_PARTITION_SPEC], ids=["by day", "unpartitioned"])
def test_filters(make_table: Callable[..., Shelf], spec: PartitionSpec) -> None:
    """Rows are those that the values themselves tell; a null matches no comparison, as in SQL."""
    project, _ = make_table(ROWS[:12], ROWS[12:], spec=spec)
    for where, matches in FILTERS:
        expected = [each["id"] for each in ROWS if matches(each)]
        assert ids(project.scan("shop.works", where=where, columns=["id"])) == expected, where
        tasks = project.reindex_tasks("shop.works", where=where, columns=["id"], size=1)
        sent = [project.reindex_task(json.loads(json.dumps(task.as_json()))) for task in tasks]
        assert all(task.schema.names == ["id"] for task in sent)
        assert sorted(number for task in sent for number in task.to_arrow()["id"].to_pylist()) == expected, (
            where
        )


def test_bounds_and_partitions_keep_files_closed(make_table: Callable[..., Shelf]) -> None:
    """Neither files nor manifests are opened whose partition or bounds tell that no row matches."""
    project, table = make_table(ROWS[:10], ROWS[10:20], ROWS[20:])
    with opened_files() as opened:
        assert ids(project.scan("shop.works", time_column="local", start="2026-11-05T04:00")) == [
            20,
            21,
            22,
            23,
        ]
    assert len(data_files(opened)) == 1
    with opened_files() as opened:
        project.scan("shop.works", time_column="modified_time", end="2026-11-01T01:00").to_arrow()
    assert len(data_files(opened)) == 1
    assert len(manifests_among(opened)) == 1
    [task] = project.reindex_tasks("shop.works", where="local >= '2026-11-05T04:00'")
    assert len(task.files) == 1
    with table.update_spec() as update:
        update.add_field("deleted", IdentityTransform())
    table.append(arrow([row(24)]))
    assert ids(project.scan("shop.works", where="deleted = true AND id > 15")) == [16, 20, 24]


@pytest.mark.parametrize("kind", [FloatType(), DoubleType()], ids=str)
@pytest.mark.parametrize("spec", [True, False], ids=["partitioned", "not partitioned"])
def test_partitions_by_a_number_with_a_point(
    make_table: Callable[..., Shelf], kind: PrimitiveType, spec: bool
) -> None:
    """−0.0 equals 0.0, also where the two are two partitions; values need not be those of 32 bits."""
    schema = Schema(
        NestedField(1, "id", LongType(), required=False), NestedField(2, "x", kind, required=False)
    )
    # PyIceberg writes no partition of NaN.
    values = [0.0, -0.0, 1.5, 1.1, 9.0 if spec else float("nan"), None]
    appends = [[{"id": number, "x": value}] for number, value in enumerate(values)]
    by = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "x"))
    project, _ = make_table(*appends, schema=schema, spec=by if spec else UNPARTITIONED_PARTITION_SPEC)
    for where, expected in {
        "x IN (1.5, 2.5)": [2],
        "x IN (1.1, 0.0)": [0, 1, 3],
        "x = 0.0": [0, 1],
        "x = 1.1": [3],
        "x >= 1.1 AND x < 1.5": [3],
        "x NOT IN (1.5, 0.0)": [3, 4],
        "x IS NAN": [] if spec else [4],
        "x IS NULL": [5],
    }.items():
        assert ids(project.scan("shop.works", where=where)) == expected, where
    with opened_files() as opened:
        assert ids(project.scan("shop.works", where="x IN (1.5, 2.5)")) == [2]
    assert len(data_files(opened)) == 1 or not spec


def test_groups_of_rows_are_left_out(make_table: Callable[..., Shelf]) -> None:
    """In a file with several row groups, the others are not read."""
    project, table = make_table(spec=UNPARTITIONED_PARTITION_SPEC)
    with table.transaction() as change:
        change.set_properties({"write.parquet.row-group-limit": "4"})
    table.append(arrow(ROWS))
    scan = project.scan("shop.works", time_column="modified_time", start="2026-11-05T04:00", columns=["id"])
    [part] = scan.parts
    assert scan.row_filter is not None
    read = scan._reader.read(part, Pruning(scan.table.metadata, scan.row_filter))
    assert sum(batch.num_rows for batch in read) == 4
    assert ids(scan) == [20, 21, 22, 23]


def test_widened_and_renamed_columns(make_table: Callable[..., Shelf]) -> None:
    """Bounds of files of before an evolution are those of the old type: the rows are found all the same."""
    schema = Schema(NestedField(1, "id", IntegerType(), required=False))
    project, table = make_table(
        [{"id": 1}], schema=schema, spec=PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))
    )
    with table.update_schema() as update:
        update.update_column("id", LongType())
        update.rename_column("id", "number")
    table.append(pa.table({"number": pa.array([2, 5_000_000_000], pa.int64())}))
    found = project.scan("shop.works", where="number < 5000000000")
    assert sorted(found.to_arrow()["number"].to_pylist()) == [1, 2]
    assert project.scan("shop.works", where="number = 1").to_arrow().num_rows == 1


def test_values_at_the_edge_of_their_type(make_table: Callable[..., Shelf]) -> None:
    """A value beyond the range of a column is none of its values; UUIDs and times of day are compared too."""
    own = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
    schema = Schema(
        NestedField(1, "id", IntegerType(), required=False),
        NestedField(2, "key", UUIDType(), required=False),
        NestedField(3, "hour", TimeType(), required=False),
    )
    most = 2**31 - 1
    rows = [
        {"id": 1, "key": own.bytes, "hour": time(9)},
        {"id": most, "key": UUID(int=7).bytes, "hour": time(14, 30)},
        {"id": None, "key": None, "hour": None},
    ]
    project, _ = make_table(rows, schema=schema, spec=UNPARTITIONED_PARTITION_SPEC)
    expected = {
        "id IN (1, 99999999999)": [1],
        "id IN (99999999999, 99999999998)": [],
        "id NOT IN (99999999999, 99999999998)": [1, most],
        "id < 99999999999": [1, most],
        "id > 99999999999": [],
        "NOT id > 99999999999": [1, most],
        "NOT id IN (1, 99999999999)": [most],
        f"key = '{own}'": [1],
        f"key != '{own}'": [most],
        f"key IN ('{own}', '{UUID(int=8)}')": [1],
        f"key NOT IN ('{own}', '{UUID(int=8)}')": [most],
        "hour >= '10:00:00'": [most],
    }
    assert {where: ids(project.scan("shop.works", where=where)) for where in expected} == expected


def test_decimals_of_any_length(make_table: Callable[..., Shelf]) -> None:
    """Decimals of up to 38 digits are compared exactly; one that no value can be is larger or smaller."""
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "much", DecimalType(38, 10), required=False),
        NestedField(3, "little", DecimalType(4, 2), required=False),
    )
    rows = [
        {"id": 1, "much": Decimal("1234567890123456789012345678.5"), "little": Decimal("99.99")},
        {"id": 2, "much": Decimal("-1234567890123456789012345678.0000000001"), "little": Decimal("-99.99")},
        {"id": 3, "much": None, "little": None},
    ]
    project, _ = make_table(rows, schema=schema, spec=UNPARTITIONED_PARTITION_SPEC)
    expected = {
        "much = 1234567890123456789012345678.5": [1],
        "much > 1234567890123456789012345678": [1],
        "much < -1234567890123456789012345678": [2],
        "much IN (-1234567890123456789012345678.0000000001, 7.0)": [2],
        "much < 100000000000000000000000000000000": [1, 2],
        "little < 100": [1, 2],
        "little > 100": [],
        "little > -100": [1, 2],
        "little IN (99.99, 100.0)": [1],
        "little NOT IN (99.99, -1000.0)": [2],
        "little != 100": [1, 2],
        "little = 00.00": [],
    }
    assert {where: ids(project.scan("shop.works", where=where)) for where in expected} == expected


def test_an_older_snapshot_and_an_empty_table(make_table: Callable[..., Shelf]) -> None:
    """A snapshot is named as for tasks; a table without a snapshot has no rows."""
    project, table = make_table()
    assert project.scan("shop.works", where="id = 1").to_arrow().num_rows == 0
    table.append(arrow(ROWS[:2]))
    first = table.metadata.current_snapshot_id
    table.append(arrow(ROWS[2:4]))
    assert ids(project.scan("shop.works", snapshot_id=first)) == [0, 1]
    assert ids(project.scan("shop.works")) == [0, 1, 2, 3]
    with pytest.raises(UnknownPoint):
        project.scan("shop.works", snapshot_id=1234567890123456789)
    with pytest.raises(TableNotFound):
        project.scan("shop.nothing")


@pytest.mark.parametrize(
    ("asked", "reason", "remedy"),
    [
        ({"columns": ["titel"]}, 'It has no column "titel".', 'Write "title".'),
        ({"columns": ["zzzzzz"]}, 'It has no column "zzzzzz".', "Its columns are id, modified_time,"),
        ({"columns": "title"}, 'columns="title" is a text.', 'columns=["title"]'),
        ({"columns": []}, "No column is named.", "leave `columns` out"),
        ({"where": "modified = '2026-11-01'"}, 'It has no column "modified".', 'Write "modified_time".'),
        ({"where": "id >"}, 'The filter "id >" cannot be understood', "single quotes"),
        ({"where": "id = 1 AND upper(title) = 'A'"}, "cannot be understood", "comparisons with AND"),
        ({"where": "title LIKE '%a'"}, "LIKE", "LIKE 'abc%'"),
        ({"where": "id = 1.5"}, "of type long, and cannot be compared with 1.5", "comparisons"),
        ({"where": "id = 'x'"}, "of type long, and cannot be compared with x", "comparisons"),
        ({"where": "amount = 1.255"}, "of type decimal(12, 2)", "comparisons"),
        (
            {"where": "modified_time > 'noon'"},
            "of type timestamptz, and cannot be compared",
            "without a zone",
        ),
        ({"where": "day = '2026-11-01T10:00'"}, "of type date", "without a zone"),
        ({"where": "tags = 'x'"}, "of type list<string>", "comparisons"),
        ({"where": "tags.element = 'x'"}, "does not fit", "comparisons"),
        ({"time_column": "modified", "start": "2026-11-01"}, 'no column "modified"', "modified_time"),
        ({"time_column": "title", "start": "2026-11-01"}, "neither a date nor a timestamp", "where="),
        ({"time_column": "day", "start": "noon"}, '"noon" is not a valid time.', "without a zone"),
        ({"time_column": "day", "end": "9999-12-31T23:00-02:00"}, "is not a valid time.", "without a zone"),
        (
            {"time_column": "day", "start": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2)))},
            "is not a valid time.",
            "without a zone",
        ),
        ({"time_column": "day", "start": "2026-11-02", "end": "2026-11-01"}, "before it begins", "Write"),
        ({"start": "2026-11-02"}, "of no column", 'time_column="modified_time"'),
    ],
)
def test_what_does_not_fit(
    make_table: Callable[..., Shelf], asked: dict[str, Any], reason: str, remedy: str
) -> None:
    """Unknown columns, filters that cannot be understood and values of another kind say what to write."""
    project, _ = make_table()
    with pytest.raises(ScanInvalid) as caught:
        project.scan("shop.works", **asked)
    assert reason in caught.value.reason
    assert remedy in caught.value.remedy
    if asked.keys() <= {"columns", "where"}:
        with pytest.raises(ScanInvalid):
            project.reindex_tasks("shop.works", **asked)


def test_polars_that_is_not_installed(
    make_table: Callable[..., Shelf], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What to install is said when rows are asked for, and Arrow works without it."""
    monkeypatch.setitem(sys.modules, "polars", None)
    project, _ = make_table(ROWS[:2])
    scan = project.scan("shop.works")
    assert scan.to_arrow().num_rows == 2
    with pytest.raises(ReaderNotInstalled) as caught:
        scan.to_polars()
    assert "esker[polars]" in caught.value.remedy


@pytest.mark.spark
def test_deletes_of_every_kind(make: Make) -> None:
    """Vectors, position deletes and deletes by value count, also those by columns that nobody asked for."""
    for version in (2, 3):
        works = make(lane="small", format_version=version, partition_by=["bucket(2, id)"])
        works.load([{"id": n, "title": "a", "size": n, "deleted": False} for n in range(10)])
        works.load([{"id": n, "title": "b", "size": n, "deleted": False} for n in (2, 4)])
        works.load([{"id": 5, "title": "b", "size": 5, "deleted": True}])
        found = works.project.scan("shop.works", where="size < 6", columns=["id", "title"])
        expected = sorted((each["id"], each["title"]) for each in works.rows().values() if each["size"] < 6)
        assert sorted(map(tuple, (each.values() for each in found.to_arrow().to_pylist()))) == expected
        assert sorted(map(tuple, found.to_spark().collect())) == expected
        [*tasks] = works.project.reindex_tasks("shop.works", where="size < 6", columns=["id"], size=1)
        told = sorted(number for task in tasks for number in task.to_arrow()["id"].to_pylist())
        assert told == [0, 1, 2, 3, 4]
        assert sorted(each.id for task in tasks for each in task.to_spark().collect()) == told


@pytest.mark.spark
def test_deletes_by_values_of_other_columns(make: Make) -> None:
    """Another engine deleted by a column that is neither asked for nor filtered."""
    works = make(lane="small")
    works.load([{"id": 1, "title": "a", "size": 1}, {"id": 2, "title": "b", "size": 1}])
    delete_by_value(works.project.engine, TableId("lake", "shop.works"), {"title": "a"})
    assert works.project.scan("shop.works", where="size = 1", columns=["id"]).to_arrow()[
        "id"
    ].to_pylist() == [2]
    assert len(works.sql(f"SELECT * FROM {WORKS}")) == 1


@pytest.mark.spark
def test_deletes_by_numbers_with_a_point(make: Make) -> None:
    """NaN is deleted by NaN, and −0.0 is another value than 0.0, as for Iceberg's own readers."""
    works = make(lane="small")
    numbers = [float("nan"), 0.0, -0.0, 1.5, None]
    works.load(pa.table({"id": range(5), "size": pa.array(numbers, pa.float64())}))
    for deleted, left in ((float("nan"), [1, 2, 3, 4]), (0.0, [2, 3, 4]), (1.5, [2, 4])):
        delete_by_value(works.project.engine, TableId("lake", "shop.works"), {"size": deleted})
        read_by_spark = sorted(row["id"] for row in works.sql(f"SELECT id FROM {WORKS}"))
        assert ids(works.project.scan("shop.works", columns=["id"])) == read_by_spark == left


@pytest.mark.parametrize("is_void", [True, False])
def test_deletes_by_value_of_a_spec_without_partitions(
    make_table: Callable[..., Shelf], is_void: bool
) -> None:
    """They concern every file. Fields that are void, as of tables of format version 1, are no partitions."""
    project, table = make_table(ROWS[:2])
    scan = project.scan("shop.works")
    transform: Any = VoidTransform() if is_void else IdentityTransform()
    later = PartitionSpec(PartitionField(4, 1001, transform, "day"), spec_id=1)
    metadata = table.metadata.model_copy(update={"partition_specs": [*table.metadata.partition_specs, later]})
    live = files_at(scan.table, scan.table.current)
    [file] = live.data
    partition = (("day", None if is_void else 20_000),)
    delete = replace(
        file, content=2, sequence=file.sequence + 1, spec_id=1, partition=partition, equality=(1,)
    )
    [part] = parts_of(replace(scan.table, metadata=metadata), replace(live, deletes=(delete,)), [file])
    assert part.deletes == ((delete,) if is_void else ())


def test_deletes_by_a_value_inside_a_column(make_table: Callable[..., Shelf]) -> None:
    """They are left to Spark, and never overlooked."""
    project, table = make_table(ROWS[:2], spec=UNPARTITIONED_PARTITION_SPEC)
    town = table.schema().find_field("place.town").field_id
    scan = project.scan("shop.works")
    [part] = scan.parts
    delete = FileEntry(
        content=2,
        path="nowhere.parquet",
        format="parquet",
        records=1,
        size=0,
        sequence=9,
        added=0,
        snapshot=None,
        spec_id=0,
        partition=(),
        lower={},
        upper={},
        reference=None,
        offset=None,
        length=None,
        equality=(town,),
    )
    with pytest.raises(NotWithoutSpark) as caught:
        list(scan._reader.read(replace(part, deletes=(delete,))))
    assert "inside a column" in caught.value.reason


@pytest.mark.spark
def test_spark_gives_the_same_rows(make: Make) -> None:
    """A filter means for `to_spark()` what it means here: nulls, NaN, decimals, times."""
    works = make(lane="small", deleted_column="gone")
    works.load(arrow(ROWS))
    for where, matches in FILTERS:
        found = works.project.scan("shop.works", where=where, columns=["id"])
        expected = [each["id"] for each in ROWS if matches(each)]
        assert sorted(each.id for each in found.to_spark().collect()) == ids(found) == expected, where
    times = works.project.scan("shop.works", time_column="local", end="2026-11-01T05:00:00.5")
    assert [each.id for each in times.to_spark().orderBy("id").collect()] == [0, 1]
