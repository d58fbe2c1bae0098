"""Keyed modes on tables as they are in practice: all kinds of keys, partitions, format versions, and what
other engines did to the table in between. Every promise holds in both lanes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from esker.engine.iceberg import lookup, manifests
from esker.engine.iceberg.table import TableId, java_table
from esker.errors import NotWithoutSpark, RowsLost, UnsuitableKey
from esker.events import Step
from tests.load.works import CHANGES, QUARANTINE, WORKS, Make, Row, Works, at, both_lanes, large_in_soak

pytestmark = pytest.mark.spark


class Stopped(BaseException):
    """The process stops in the middle: nobody catches this."""


def stop() -> None:
    raise Stopped("here")


def moment(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, tzinfo=UTC)


def titles(works: Works) -> dict[Any, Any]:
    return {number: row["title"] for number, row in works.rows().items()}


# --- keys ----------------------------------------------------------------------------------------


@large_in_soak
def test_composite_keys_are_not_glued_together(make: Make, lane: str) -> None:
    """Keys whose parts would give one text when joined are different keys."""
    works = make(lane=lane, key=["a", "n", "b"])
    keys = [
        ("1", 1, "1"),
        ("11", 1, ""),
        ("", 11, "1"),
        ("1", 11, ""),
        ("", 1, "11"),
        ("x:1:1", 1, "y"),
        ("x", 1, "1:1:y"),
        ("a,b", 1, "c"),
        ("a", 1, "b,c"),
        ("\0", 1, ""),
        ("", 1, "\0"),
    ]
    rows = [{"a": a, "n": n, "b": b, "title": f"{place}"} for place, (a, n, b) in enumerate(keys)]
    assert works.load(rows).rows.inserted == len(keys)
    again = works.load([row | {"title": "new"} if place % 2 else row for place, row in enumerate(rows)])
    assert (again.rows.updated, again.rows.unchanged, again.rows.inserted) == (5, 6, 0)
    stored = {(row["a"], row["n"], row["b"]): row["title"] for row in works.read()}
    assert stored == {key: "new" if place % 2 else f"{place}" for place, key in enumerate(keys)}


PREFIX = "a text that is longer than bounds in manifests are: "
KEYS: dict[str, list[Any]] = {
    "string": ["", "a", "Å", "ß", "日本", "😀", "￿", f"{PREFIX}1", f"{PREFIX}😀", f"{PREFIX}", "A\u030a"],
    "int": [-(2**31), -1, 0, 1, 255, 256, 2**31 - 1],
    "bigint": [-(2**63), -1, 0, 1, 2**40, 2**63 - 1],
    "date": [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2026, 1, 2), date(9999, 12, 31)],
    "timestamp": [
        datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        moment(1),
        moment(1).replace(microsecond=1),
        moment(2),
        datetime(9999, 12, 31, tzinfo=UTC),
    ],
    "timestamp_ntz": [datetime(1969, 12, 31, 23, 59), datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 0, 1)],
    "decimal(12,2)": [Decimal("-1.50"), Decimal("0.00"), Decimal("0.01"), Decimal("9999999999.99")],
    "decimal(5,0)": [Decimal(-99999), Decimal(0), Decimal(7), Decimal(99999)],
    "decimal(38,10)": [
        Decimal(f"{sign}{number}")
        for sign in ("-", "")
        for number in ("9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999998")
    ],
    "boolean": [False, True],
}


@pytest.mark.parametrize("bounds", ["each", "range"])
@pytest.mark.parametrize("kind", KEYS)
def test_key_type(make: Make, kind: str, bounds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of a type are found again in files whose bounds hold them, one by one or as a range."""
    if bounds == "range":
        monkeypatch.setattr(lookup, "_EXACT_KEYS", 0)
    works = make(lane="small", columns={"id": kind})
    keys = KEYS[kind]
    half = (len(keys) + 1) // 2
    works.load([{"id": key, "title": "a"} for key in keys[:half]])
    works.load([{"id": key, "title": "a"} for key in keys[half:]])
    result = works.load([{"id": key, "title": "b"} for key in keys])
    assert (result.rows.updated, result.rows.inserted) == (len(keys), 0)
    assert result.rows.read == len(keys)
    expected = {key.replace(tzinfo=None) if isinstance(key, datetime) else key for key in keys}
    assert titles(works) == dict.fromkeys(expected, "b")


@large_in_soak
def test_all_key_types_in_one_key(make: Make, lane: str) -> None:
    """A key of many columns: each of them alone makes another key."""
    kinds = {f"k{place}": kind for place, kind in enumerate(KEYS)}
    works = make(lane=lane, key=list(kinds), columns=kinds)
    plain = {name: KEYS[kind][0] for name, kind in kinds.items()}
    rows = [plain | {name: value} for name, kind in kinds.items() for value in KEYS[kind][1:]] + [plain]
    assert works.load([row | {"title": "a"} for row in rows]).rows.inserted == len(rows)
    result = works.load([row | {"title": "b" if place % 2 else "a"} for place, row in enumerate(rows)])
    assert (result.rows.updated, result.rows.unchanged) == (len(rows) // 2, len(rows) - len(rows) // 2)
    assert len(works.read()) == len(rows)


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process live where an hour of the year comes twice."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@large_in_soak
@pytest.mark.parametrize("hour", [0, 1])
def test_key_in_the_hour_that_comes_twice(make: Make, lane: str, hour: int, in_berlin: None) -> None:
    """Moments are compared as moments, wherever the process runs."""
    works = make(lane=lane, order_by="at")
    key = datetime(2026, 10, 25, hour, 30, tzinfo=UTC)
    works.load([{"id": key, "at": key, "title": "a"}])
    result = works.load([{"id": key, "at": key, "title": "b"}])
    assert (result.rows.updated, result.rows.inserted) == (1, 0)
    [found] = works.sql(f"SELECT unix_seconds(id) AS id, unix_seconds(at) AS at, title FROM {WORKS}")
    assert tuple(found) == (key.timestamp(), key.timestamp(), "b")


@large_in_soak
def test_days_that_python_does_not_know(make: Make, lane: str) -> None:
    """Days and moments after the year 9999 are keys and contents like others, also inside structs."""
    works = make(lane=lane, key=["day"])
    inside = pa.struct([("days", pa.list_(pa.date32())), ("at", pa.timestamp("us"))])
    far = 10**18  # microseconds: the year 33658

    def load(days: list[int], last: int) -> tuple[int, int, int]:
        columns = {
            "day": pa.array(days, pa.int32()).cast(pa.date32()),
            "due": pa.array([3_000_000] * (len(days) - 1) + [last], pa.int32()).cast(pa.date32()),
            "at": pa.array([far] * len(days), pa.timestamp("us", tz="UTC")),
            "inside": pa.array([{"days": [3_000_000, None], "at": far}] * len(days), inside),
        }
        rows = works.load(pa.table(columns)).rows
        return rows.inserted, rows.updated, rows.unchanged

    assert load([0, 3_000_000, 3_000_001], 3_000_000) == (3, 0, 0)
    assert load([3_000_000, 3_000_001, 3_000_002, 3_000_010], 3_000_005) == (2, 0, 2)
    assert load([0, 3_000_001], 3_000_007) == (0, 1, 1)
    days = works.sql(f"SELECT unix_date(day), unix_date(due) FROM {WORKS}")
    assert sorted(map(tuple, days)) == [
        (0, 3_000_000),
        (3_000_000, 3_000_000),
        (3_000_001, 3_000_007),
        (3_000_002, 3_000_000),
        (3_000_010, 3_000_005),
    ]


@large_in_soak
def test_names_in_another_case(make: Make, lane: str) -> None:
    """`key: [ID]` means the column `id`: Spark takes both as one."""
    works = make(lane=lane, key=["ID"], order_by="AT", deleted_column="Gone")
    works.load(
        [{"id": 1, "at": 1, "title": "a", "gone": False}, {"id": 2, "at": 1, "title": "a", "gone": False}]
    )
    result = works.load(
        [{"id": 1, "at": 2, "title": "b", "gone": False}, {"id": 2, "at": 2, "title": "b", "gone": True}]
    )
    assert (result.rows.updated, result.rows.deleted) == (1, 1)
    assert {number: (row["title"], row["gone"]) for number, row in works.rows().items()} == {
        1: ("b", False),
        2: ("a", True),
    }


@large_in_soak
def test_columns_called_like_what_decides(make: Make, lane: str) -> None:
    """A table may have columns with the names that the comparison uses for itself."""
    names = ("winner", "outcome", "s_hash", "s_order", "final", "file", "pos", "hash", "ord", "del", "again")
    works = make(lane=lane, order_by="version")

    def row(number: int, version: int, text: str, *, deleted: bool = False) -> Row:
        return {"id": number, "version": version, "deleted": deleted} | dict.fromkeys(names, text)

    works.load([row(1, 1, "a"), row(2, 1, "a")])
    works.load([row(1, 2, "b"), row(2, 2, "b", deleted=True), row(3, 2, "b")])
    assert works.rows() == {1: row(1, 2, "b"), 2: row(2, 2, "a", deleted=True), 3: row(3, 2, "b")}
    assert works.ops(2) == {1: "update", 2: "delete", 3: "insert"}


def test_key_that_cannot_be_one(make: Make) -> None:
    """A column that is missing, or of a type without exact values, is refused before anything is made."""
    with pytest.raises(UnsuitableKey, match='"nothing"'):
        make(key=["nothing"]).load([{"id": 1}])
    with pytest.raises(UnsuitableKey, match="double"):
        make().load([{"id": 1.5}])
    with pytest.raises(UnsuitableKey, match="order_by"):
        make(order_by="at").load([{"id": 1, "at": [1]}])


# --- content -------------------------------------------------------------------------------------


@both_lanes
def test_nested_columns_and_nulls(make: Make, lane: str) -> None:
    """Structs, lists, maps and nulls are compared, written, and kept by a soft delete."""
    kinds = {
        "who": "struct<name: string, born: date, at: struct<city: string>>",
        "tags": "array<string>",
        "counts": "map<string, bigint>",
        "parts": "array<struct<n: int, price: decimal(9,2)>>",
    }
    works = make(lane=lane, columns={"id": "bigint", **kinds})
    full: Row = {
        "who": {"name": "Ada", "born": date(1815, 12, 10), "at": {"city": "London"}},
        "tags": ["x", None, ""],
        "counts": {"a": 1, "b": None},
        "parts": [{"n": 1, "price": Decimal("1.50")}, {"n": None, "price": None}],
    }
    empty: Row = {"who": {"name": None, "born": None, "at": None}, "tags": [], "counts": {}, "parts": []}
    null: Row = dict.fromkeys(kinds)
    schema = works.project.engine.spark.createDataFrame

    def load(rows: dict[int, Row]) -> Any:
        text = ", ".join(["id bigint", *(f"{name} {kind}" for name, kind in kinds.items())])
        deleted = [{"id": number, "deleted": bool(row.get("deleted")), **row} for number, row in rows.items()]
        return works.load(schema(deleted, f"{text}, deleted boolean")).rows

    first = {number: dict(row) for number, row in enumerate((full, empty, null, full, empty, null, full))}
    assert load(first).inserted == 7
    other_city = full | {"who": full["who"] | {"at": {"city": "Bath"}}}
    second: dict[int, Row] = {
        0: full,
        1: empty,
        2: null,
        3: other_city,
        4: null,
        5: empty,
        6: {**null, "deleted": True},
    }
    counts = load(second)
    assert (counts.unchanged, counts.updated, counts.deleted) == (3, 3, 1)
    rows = works.rows()
    expected = {**second, 6: full}
    for number, row in expected.items():
        assert rows[number] == {"id": number, **row, "deleted": number == 6}
    assert works.replayed() == rows


@large_in_soak
def test_column_that_the_source_does_not_send(make: Make, lane: str) -> None:
    """A declared column that never comes is null; sending it later is a change of those rows alone."""
    works = make(lane=lane, columns={"note": "string"})
    works.load([{"id": 1, "title": "a"}, {"id": 2, "title": "a"}])
    assert works.load([{"id": 1, "title": "a"}, {"id": 2, "title": "a"}]).rows.unchanged == 2
    result = works.load([{"id": 1, "title": "a", "note": "x"}, {"id": 2, "title": "a", "note": None}])
    assert (result.rows.updated, result.rows.unchanged) == (1, 1)
    assert {number: row["note"] for number, row in works.rows().items()} == {1: "x", 2: None}


@large_in_soak
def test_column_that_the_source_begins_to_send(make: Make, lane: str) -> None:
    """A new column, with updates, deletes and unchanged rows in the very batch that brings it."""
    works = make(lane=lane)
    works.load([{"id": number, "title": "a"} for number in range(4)])
    result = works.load(
        [
            {"id": 0, "title": "a", "more": None, "deleted": False},
            {"id": 1, "title": "a", "more": 7, "deleted": False},
            {"id": 2, "title": "a", "more": 7, "deleted": True},
        ]
    )
    assert (result.rows.unchanged, result.rows.updated, result.rows.deleted) == (1, 1, 1)
    rows = works.rows()
    assert [rows[number]["more"] for number in range(4)] == [None, 7, None, None]
    assert [rows[number]["deleted"] for number in range(4)] == [False, False, True, False]
    assert works.replayed() == rows


@large_in_soak
def test_changes_off(make: Make, lane: str) -> None:
    """Without a change log rows are loaded all the same, and no log is made."""
    works = make(lane=lane, changes="off", deletes="hard")
    works.load([{"id": 1, "title": "a", "deleted": False}, {"id": 2, "title": "a", "deleted": False}])
    result = works.load([{"id": 1, "title": "b", "deleted": False}, {"id": 2, "title": "a", "deleted": True}])
    assert (result.changeset, result.rows.updated, result.rows.deleted, result.log_lag) == (2, 1, 1, 0)
    assert titles(works) == {1: "b"}
    tables = {row.tableName for row in works.sql("SHOW TABLES IN lake.shop")}
    assert tables == {"works"}
    assert works.outbox() == []


# --- rows without a key --------------------------------------------------------------------------


@both_lanes
def test_rows_without_a_key_are_quarantined_once(make: Make, lane: str) -> None:
    """They are told apart by their batch, kept with the reason, and there once after a stop and a rerun."""
    works = make(lane=lane, key=["id", "part"], columns={"id": "bigint", "part": "string"})
    batch: list[Row] = [
        {"id": 1, "part": "a", "title": "good"},
        {"id": None, "part": "a", "title": "no id"},
        {"id": 1, "part": None, "title": "no part"},
        {"id": None, "part": None, "title": "no key"},
    ]
    with pytest.raises(Stopped):
        works.load(batch, at(Step.AFTER_COMMIT, stop))
    assert [row["title"] for row in works.read()] == ["good"]
    # Whoever comes next settles what is owed, before its own work.
    result = works.load([{"id": 2, "part": "b", "title": "next"}])
    assert (result.rows.inserted, result.rows.quarantined) == (1, 0)
    kept = {json.loads(row.payload)["title"]: row for row in works.sql(f"SELECT * FROM {QUARANTINE}")}
    assert set(kept) == {"no id", "no part", "no key"}
    assert len(works.sql(f"SELECT * FROM {QUARANTINE}")) == 3
    assert kept["no id"].reason == 'the key column "id" has no value'
    assert kept["no key"].reason == 'the key column "id", "part" has no value'
    assert {(row.changeset, row.pipeline, *row.rules) for row in kept.values()} == {(1, "works", "key")}
    assert json.loads(kept["no part"].payload)["id"] == "1"


@both_lanes
def test_batch_of_quarantined_rows_only(make: Make, lane: str) -> None:
    """It is counted, kept and not read again; table and log go on without a gap."""
    works = make(lane=lane, columns={"id": "bigint", "title": "string"})
    works.folder.write_jsonl("landing/a.jsonl", [{"id": 1, "title": "a"}])
    works.change(source={"type": "files", "path": "landing/*.jsonl", "format": "jsonl"})
    works.project.run("works")
    works.folder.write_jsonl("landing/b.jsonl", [{"title": "missing"}, {"id": None, "title": "null"}])
    result = works.project.run("works")
    assert (result.rows.read, result.rows.quarantined, result.changeset) == (2, 2, 2)
    assert works.project.run("works").rows.read == 0
    works.folder.write_jsonl("landing/c.jsonl", [{"id": 1, "title": "b"}])
    assert works.project.run("works").changeset == 3
    assert titles(works) == {1: "b"}
    origins = [row.origin for row in works.sql(f"SELECT origin FROM {QUARANTINE}")]
    assert [origin.rpartition("/")[2] for origin in origins] == ["b.jsonl", "b.jsonl"]
    assert works.properties(CHANGES)["esker.logged"] == "3"
    assert [row["_esker_changeset"] for row in works.log()] == [1, 3]


# --- partitions ----------------------------------------------------------------------------------


PARTITIONED = {"order_by": "last_modified", "partition_by": ["bucket(10, id)", "day(last_modified)"]}


def work(number: int, day: int, title: str = "a", *, deleted: bool = False) -> Row:
    return {"id": f"w{number}", "title": title, "last_modified": moment(day, number % 24), "deleted": deleted}


@both_lanes
@pytest.mark.parametrize("version", [2, 3])
def test_update_that_moves_a_row_to_another_partition(make: Make, lane: str, version: int) -> None:
    """The old version is deleted where it was, the new one stands in its new partition."""
    works = make(lane=lane, format_version=version, **PARTITIONED)
    works.load([work(number, 1) for number in range(30)])
    changed = [work(number, 2, "b") for number in range(10)]
    gone = [work(number, 3, deleted=True) for number in range(10, 15)]
    late = [
        work(number, 1, "late") | {"last_modified": datetime(2025, 1, 1, tzinfo=UTC)} for number in (20, 21)
    ]
    result = works.load([*changed, *gone, *late])
    assert (result.rows.updated, result.rows.deleted, result.rows.stale) == (10, 5, 2)
    works.load([work(number, 4, "c") for number in range(5)])
    rows = works.rows()
    assert len(rows) == 30
    for number in range(30):
        title = "c" if number < 5 else "b" if number < 10 else "a"
        day = 4 if number < 5 else 2 if number < 10 else 3 if number < 15 else 1
        assert (rows[f"w{number}"]["title"], rows[f"w{number}"]["last_modified"].day) == (title, day)
    found = works.sql(f"SELECT id FROM {WORKS} WHERE last_modified >= DATE '2026-01-04'")
    assert {row.id for row in found} == {f"w{number}" for number in range(5)}
    partitions = works.sql(f"SELECT partition FROM {WORKS}.files WHERE content = 0")
    assert {str(row.partition.last_modified_day) for row in partitions} == {
        f"2026-01-0{day}" for day in range(1, 5)
    }
    assert works.replayed() == rows


@large_in_soak
def test_identity_partitions_with_nulls(make: Make, lane: str) -> None:
    """A partition value may be null, a text or a date, and may change with an update."""
    works = make(lane=lane, partition_by=["kind", "truncate(2, title)"], columns={"kind": "string"})
    kinds = ["x", None, "y/z =", ""]
    works.load([{"id": n, "kind": kind, "title": "abc"} for n, kind in enumerate(kinds)])
    works.load([{"id": n, "kind": kinds[n - 1], "title": None} for n in range(4)])
    assert {n: (row["kind"], row["title"]) for n, row in works.rows().items()} == {
        n: (kinds[n - 1], None) for n in range(4)
    }


def test_only_partitions_of_the_batch_are_opened(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small batch costs what its partitions cost, however many the table has: manifests and data files."""
    works = make(
        lane="small",
        key=["tenant", "id"],
        partition_by=["tenant", "bucket(4, id)"],
        properties={"commit.manifest-merge.enabled": "false"},
    )
    tenants = [f"t{number}" for number in range(6)]
    for tenant in tenants:
        works.load([{"tenant": tenant, "id": number, "title": "a"} for number in range(8)])
    works.load([{"tenant": "t1", "id": number, "title": "b"} for number in range(8)])
    manifests._kept.clear()
    opened: list[str] = []
    with monkeypatch.context() as patch:
        for module, name, place in ((manifests, "_entries", 1), (lookup, "_look_into", 0)):
            real = getattr(module, name)

            def watched(*arguments: Any, real: Any = real, place: int = place) -> Any:
                found = arguments[place]
                opened.append(found if isinstance(found, str) else found.path)
                return real(*arguments)

            patch.setattr(module, name, watched)
        result = works.load([{"tenant": "t1", "id": 3, "title": "c"}])
    assert (result.rows.updated, result.rows.inserted) == (1, 0)
    data = [place for place in opened if place.endswith(".parquet")]
    assert len(data) == 2, "the row of the first batch is deleted by position, that of the second is live"
    assert all("/tenant=t1/" in place for place in data)
    assert len({place.partition("/id_bucket=")[2].partition("/")[0] for place in data}) == 1
    lists = [place for place in opened if place.endswith(".avro") and "/works/" in place]
    assert len(lists) == 3, "rows of two batches, and deletes of one"
    stored = {(row["tenant"], row["id"]): row["title"] for row in works.read()}
    assert len(stored) == 48
    assert {key for key, title in stored.items() if title != "a"} == {("t1", number) for number in range(8)}
    assert stored["t1", 3] == "c"


@large_in_soak
def test_table_that_another_engine_partitioned_anew(make: Make, lane: str) -> None:
    """Scenario 46: deletes go by the partitioning of the files they concern; one row per key remains."""
    works = make(lane=lane, **PARTITIONED)
    works.load([work(number, 1) for number in range(12)])
    works.sql(f"ALTER TABLE {WORKS} ADD PARTITION FIELD truncate(1, title)")
    works.load([work(number, 2, "b") for number in range(8)])
    works.sql(f"ALTER TABLE {WORKS} DROP PARTITION FIELD bucket(10, id)")
    works.load([work(number, 3, "c") for number in range(4)] + [work(11, 3, deleted=True)])
    works.load([work(number, 4, "d") for number in (1, 5, 9)])
    expected = {
        f"w{n}": "d" if n in (1, 5, 9) else "c" if n < 4 else "b" if n < 8 else "a" for n in range(12)
    }
    assert titles(works) == expected
    assert works.rows()["w11"]["deleted"] is True
    for reader in (with_pyiceberg, with_duckdb):
        assert {row["id"]: row["title"] for row in reader(works)} == expected
    assert works.replayed() == works.rows()


# --- other readers -------------------------------------------------------------------------------


def with_pyiceberg(works: Works) -> list[Row]:
    """Read the table with PyIceberg, without Spark."""
    home = works.folder.path / ".esker"
    catalog = SqlCatalog("lake", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}/warehouse")
    try:
        found: list[Row] = catalog.load_table("shop.works").scan().to_arrow().to_pylist()
        return found
    finally:
        catalog.close()


def with_duckdb(works: Works) -> list[Row]:
    """Read the files of a v2 table with DuckDB as the format says: data without deleted positions."""
    files = works.sql(f"SELECT content, file_path FROM {WORKS}.files")
    data, deletes = ([row.file_path for row in files if row.content == content] for content in (0, 1))
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    # Files spell their location with or without "file:".
    plain = "replace(replace({}, 'file://', ''), 'file:', '')"
    paths = [path.removeprefix("file://").removeprefix("file:") for path in data]
    query = "SELECT * FROM read_parquet($data, filename=true, file_row_number=true, union_by_name=true)"
    given: dict[str, Any] = {"data": paths}
    if deletes:
        query += (
            f" AS d WHERE NOT EXISTS (SELECT 1 FROM read_parquet($deletes) AS x WHERE"
            f" {plain.format('x.file_path')} = d.filename AND x.pos = d.file_row_number)"
        )
        given["deletes"] = [path.removeprefix("file://").removeprefix("file:") for path in deletes]
    found: list[Row] = duck.execute(query, given).to_arrow_table().to_pylist()
    return found


@large_in_soak
@pytest.mark.parametrize("deletes", ["soft", "hard"])
def test_readers_agree(make: Make, lane: str, deletes: str) -> None:
    """Spark, PyIceberg and DuckDB see one table after updates and deletes of updated rows."""
    works = make(lane=lane, deletes=deletes, **PARTITIONED)
    works.load([work(number, 1) for number in range(20)])
    works.load([work(number, 2, "b") for number in range(10)])
    works.load([work(number, 3, "c") for number in range(5)] + [work(n, 3, deleted=True) for n in (8, 15)])
    names = ("id", "title", "deleted")
    expected = {tuple(row[name] for name in names) for row in works.rows().values()}
    assert len(expected) == (20 if deletes == "soft" else 18)
    for reader in (with_pyiceberg, with_duckdb):
        read = [tuple(row[name] for name in names) for row in reader(works)]
        assert len(read) == len(set(read))
        assert set(read) == expected


@pytest.mark.parametrize(
    ("format", "version", "lane"),
    [
        ("avro", 2, "small"),
        ("orc", 2, "small"),
        *(
            pytest.param(format, version, lane, marks=pytest.mark.soak)
            for format, version, lane in (
                ("avro", 2, "large"),
                ("orc", 2, "large"),
                ("avro", 3, "small"),
                ("orc", 3, "large"),
            )
        ),
    ],
)
def test_files_in_avro_and_orc(make: Make, format: str, version: int, lane: str) -> None:
    """Updates, deletes and undeletes, also of rows whose file Spark has deleted others of, in files like it.

    A batch that asks for the small lane takes the large one: this process writes Parquet.
    """
    works = make(lane=lane, order_by="at", format_version=version)
    works.change(format=format)

    def load(at: int, title: str, *numbers: int, deleted: bool = False) -> Any:
        rows = [{"id": n, "at": at, "title": title, "deleted": deleted} for n in numbers]
        return works.load(rows).rows

    assert load(1, "a", *range(10)).inserted == 10
    assert load(2, "b", 0, 1, 2).updated == 3
    assert load(3, "c", 1, 5, deleted=True).deleted == 2
    assert load(4, "d", 1).undeleted == 1
    assert works.replayed() == works.rows()
    works.sql(
        f"ALTER TABLE {WORKS} SET TBLPROPERTIES "
        f"('write.delete.mode' = 'merge-on-read', 'write.delete.format.default' = '{format}')"
    )
    works.sql(f"DELETE FROM {WORKS} WHERE id IN (3, 4)")
    written = {row.file_format for row in works.sql(f"SELECT file_format FROM {WORKS}.delete_files")}
    assert version == 3 or format.upper() in written
    found = load(5, "e", 2, 3, 6, 11)
    assert (found.updated, found.inserted) == (2, 2)
    works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('format-version' = '3')")
    assert load(6, "f", 7, 0).updated == 2
    expected = {0: "f", 1: "d", 2: "e", 3: "e", 5: "a", 6: "e", 7: "f", 8: "a", 9: "a", 11: "e"}
    assert titles(works) == expected
    assert [number for number, row in works.rows().items() if row["deleted"]] == [5]
    data = {row.file_format for row in works.sql(f"SELECT file_format FROM {WORKS}.data_files")}
    assert data == {format.upper()}
    scan = works.project.scan("shop.works", columns=["id", "title"])
    if format == "orc":
        assert {row["id"]: row["title"] for row in scan.to_arrow().to_pylist()} == expected
    else:
        with pytest.raises(NotWithoutSpark):
            scan.to_arrow()


# --- format versions -----------------------------------------------------------------------------


@large_in_soak
def test_table_upgraded_to_version_3(make: Make, lane: str) -> None:
    """Scenario 47: a file with position deletes gets a vector that holds them all; nothing comes back."""
    works = make(lane=lane, order_by="at", deletes="hard")
    rows = [{"id": n, "at": 1, "title": "a", "deleted": False} for n in range(10)]
    works.load(rows)
    works.load(
        [
            {"id": 0, "at": 2, "title": "b", "deleted": False},
            {"id": 1, "at": 2, "title": "a", "deleted": True},
        ]
    )
    # One delete file of another engine that concerns several data files.
    works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    works.sql(f"DELETE FROM {WORKS} WHERE id = 2")
    works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('format-version' = '3')")
    works.load(
        [
            {"id": 3, "at": 3, "title": "c", "deleted": False},
            {"id": 4, "at": 3, "title": "a", "deleted": True},
        ]
    )
    assert titles(works) == {0: "b", 3: "c", **dict.fromkeys(range(5, 10), "a")}
    works.load(
        [
            {"id": 5, "at": 4, "title": "d", "deleted": False},
            {"id": 0, "at": 4, "title": "d", "deleted": False},
        ]
    )
    assert titles(works) == {0: "d", 3: "c", 5: "d", **dict.fromkeys(range(6, 10), "a")}
    vectors = works.sql(f"SELECT 1 FROM {WORKS}.delete_files WHERE file_format = 'PUFFIN'")
    assert vectors


@large_in_soak
def test_deletion_vectors_of_another_engine(make: Make, lane: str) -> None:
    """On a v3 table rows that Spark deleted stay deleted when Esker deletes further ones of their file."""
    works = make(lane=lane, format_version=3)
    works.load([{"id": n, "title": "a"} for n in range(8)])
    works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    works.sql(f"DELETE FROM {WORKS} WHERE id IN (0, 7)")
    works.load([{"id": n, "title": "b"} for n in (1, 2)])
    works.sql(f"DELETE FROM {WORKS} WHERE id = 3")
    result = works.load([{"id": n, "title": "c"} for n in (2, 4, 7)])
    assert (result.rows.updated, result.rows.inserted) == (2, 1)
    assert titles(works) == {1: "b", 2: "c", 4: "c", 5: "a", 6: "a", 7: "c"}
    duplicate = works.sql(
        f"SELECT referenced_data_file FROM {WORKS}.delete_files GROUP BY 1 HAVING count(*) > 1"
    )
    assert duplicate == []


# --- what other engines did ----------------------------------------------------------------------


@large_in_soak
def test_foreign_rows(make: Make, lane: str) -> None:
    """Copies of a key collapse to one row; rows without a hash are compared by content; others are left."""
    works = make(lane=lane, order_by="at")
    works.load([{"id": n, "at": 5, "title": "a"} for n in range(5)])
    insert = f"INSERT INTO {WORKS} (id, at, title, deleted, _esker_hash) VALUES"
    works.sql(f"{insert} (0, 4, 'copy', false, null), (1, 9, 'newer', false, null), (10, 5, 'a', null, null)")
    works.sql(f"INSERT INTO {WORKS} SELECT * FROM {WORKS} WHERE id IN (2, 3)")
    result = works.load(
        [
            {"id": 0, "at": 6, "title": "b"},  # both copies give way
            {"id": 1, "at": 6, "title": "b"},  # older than the foreign one, which stays
            {"id": 2, "at": 5, "title": "a"},  # same content: one copy stays
            {"id": 10, "at": 5, "title": "a"},  # same content, though it has no hash
        ]
    )
    assert (result.rows.updated, result.rows.stale, result.rows.unchanged) == (1, 1, 2)
    found = sorted((row["id"], row["title"]) for row in works.read())
    assert found == [(0, "b"), (1, "newer"), (2, "a"), (3, "a"), (3, "a"), (4, "a"), (10, "a")]
    assert works.load([{"id": 10, "at": 5, "title": "a"}]).rows.unchanged == 1


@both_lanes
def test_renamed_and_widened_columns(make: Make, lane: str) -> None:
    """Columns are known by their id: old files, in which they have other names and types, are read right."""
    kinds = {"id": "int", "at": "int", "title": "string", "who": "struct<name: string, n: int>", "x": "float"}
    works = make(lane=lane, order_by="at", columns={**kinds, "price": "decimal(5,2)"})

    def row(
        number: int, at: int, title: str = "a", *, deleted: bool = False, names: Mapping[str, str] = {}
    ) -> Row:
        whole = {
            "id": number,
            "at": at,
            "title": title,
            "who": {names.get("name", "name"): "n", "n": 1},
            "x": 0.1,
            "price": Decimal("1.50"),
            "deleted": deleted,
        }
        return {names.get(name, name): value for name, value in whole.items()}

    works.load([row(number, 1) for number in range(6)])
    for change in (
        "RENAME COLUMN id TO number",
        "RENAME COLUMN at TO moment",
        "RENAME COLUMN title TO name",
        "RENAME COLUMN who.name TO label",
        "ALTER COLUMN number TYPE bigint",
        "ALTER COLUMN moment TYPE bigint",
        "ALTER COLUMN who.n TYPE bigint",
        "ALTER COLUMN x TYPE double",
        "ALTER COLUMN price TYPE decimal(12,2)",
    ):
        works.sql(f"ALTER TABLE {WORKS} {change}")
    # The log has columns of its own; it is renamed by whoever renames the table's.
    works.change(key=["number"], order_by="moment", columns={}, changes="off")
    new = {"id": "number", "at": "moment", "title": "name", "name": "label"}
    result = works.load(
        [
            row(1, 2, "b", names=new),
            row(2, 0, "late", names=new),
            row(3, 2, deleted=True, names=new),
            row(2**40, 1, names=new),
        ]
    )
    assert (result.rows.updated, result.rows.stale, result.rows.deleted, result.rows.inserted) == (1, 1, 1, 1)
    rows = {found["number"]: found for found in works.read()}
    assert {number: found["name"] for number, found in rows.items()} == {
        **dict.fromkeys(range(6), "a"),
        1: "b",
        2**40: "a",
    }
    assert rows[3]["deleted"] is True
    assert rows[3]["who"] == {"label": "n", "n": 1}
    assert rows[3]["price"] == Decimal("1.50")
    assert rows[3]["x"] == pytest.approx(0.1)


@large_in_soak
def test_files_without_the_column(make: Make, lane: str) -> None:
    """Rows of files that were written before a column came are compared with null in it, not lost."""
    works = make(lane=lane, order_by="at", columns={"id": "bigint", "at": "bigint"})
    works.load([{"id": n, "title": "a"} for n in range(4)])
    works.sql(f"ALTER TABLE {WORKS} ADD COLUMN kind string")
    works.load([{"id": 4, "at": 1, "title": "a", "kind": "k"}])
    result = works.load(
        [
            {"id": 0, "at": None, "title": "a", "kind": None, "deleted": False},
            {"id": 1, "at": 1, "title": "a", "kind": "k", "deleted": False},
            {"id": 2, "at": 1, "title": "a", "kind": None, "deleted": True},
            {"id": 4, "at": 0, "title": "b", "kind": None, "deleted": False},
        ]
    )
    assert (result.rows.unchanged, result.rows.updated) == (1, 1)
    assert (result.rows.deleted, result.rows.stale) == (1, 1)
    found = {n: (row["at"], row["kind"], row["deleted"]) for n, row in works.rows().items()}
    assert found == {
        0: (None, None, False),
        1: (1, "k", False),
        2: (1, None, True),
        3: (None, None, False),
        4: (1, "k", False),
    }


def add_column(works: Works, name: str, *, default: str) -> None:
    """Add a text column with a default, which Spark itself cannot."""
    engine = works.project.engine
    iceberg: Any = engine.spark.sparkContext._jvm.org.apache.iceberg  # type: ignore[union-attr]
    change = java_table(engine, TableId("lake", "shop.works")).updateSchema()
    value = iceberg.expressions.Expressions.lit(default)
    change.addColumn(name, iceberg.types.Types.StringType.get(), "", value).commit()


@large_in_soak
def test_column_with_a_default(make: Make, lane: str) -> None:
    """A default that another engine gave a new column is the value of old rows, also of deleted ones."""
    works = make(lane=lane, format_version=3)
    works.load([{"id": 1, "title": "a"}, {"id": 2, "title": "a"}, {"id": 3, "title": "a"}])
    add_column(works, "kind", default="book")
    works.load(
        [
            {"id": 1, "title": "b", "kind": "film", "deleted": False},
            {"id": 2, "title": "a", "kind": None, "deleted": True},
        ]
    )
    assert {number: row["kind"] for number, row in works.rows().items()} == {1: "film", 2: "book", 3: "book"}


@large_in_soak
def test_table_made_by_another_engine(make: Make, lane: str) -> None:
    """A table with rows that Esker did not make gets its columns, and its rows are compared by content."""
    works = make(lane=lane)
    works.project.engine.open_catalog("lake")
    works.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    works.sql(f"CREATE TABLE {WORKS} (id bigint, title string) USING iceberg")
    works.sql(f"INSERT INTO {WORKS} VALUES (1, 'a'), (2, 'a'), (3, 'a')")
    works.load(
        [
            {"id": 1, "title": "b", "deleted": False},
            {"id": 2, "title": "a", "deleted": True},
            {"id": 4, "title": "a", "deleted": False},
        ]
    )
    assert {n: (row["title"], bool(row["deleted"])) for n, row in works.rows().items()} == {
        1: ("b", False),
        2: ("a", True),
        3: ("a", False),
        4: ("a", False),
    }


@large_in_soak
def test_table_location_without_a_scheme(make: Make, lane: str, tmp_path: Path) -> None:
    """Every reader opens the files of partition values that are quoted in paths."""
    works = make(lane=lane)
    engine = works.project.engine
    engine.open_catalog("lake")
    works.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    works.sql(f"CREATE TABLE {WORKS} (id bigint, kind string) USING iceberg PARTITIONED BY (kind)")
    # Spark's own statements add a scheme.
    moved = java_table(engine, TableId("lake", "shop.works"))
    moved.updateLocation().setLocation(f"{tmp_path}/works").commit()
    works.load([{"id": 1, "kind": "a/b"}, {"id": 2, "kind": "50%"}])
    works.load([{"id": 1, "kind": "50%"}, {"id": 2, "kind": "50%"}])
    assert {number: row["kind"] for number, row in works.rows().items()} == {1: "50%", 2: "50%"}
    assert moved.location() == f"{tmp_path}/works"


@both_lanes
@pytest.mark.parametrize("step", [Step.LOCATED, Step.WRITTEN])
def test_compaction_between_locating_and_committing(make: Make, lane: str, step: Step) -> None:
    """The batch is located again on the compacted files: no row is lost, none comes back."""
    works = make(lane=lane, order_by="at")
    works.load([{"id": n, "at": 1, "title": "a"} for n in range(6)])
    works.load([{"id": n, "at": 2, "title": "b"} for n in range(3)])

    def compact() -> None:
        works.sql(
            "CALL lake.system.rewrite_data_files("
            "table => 'shop.works', options => map('rewrite-all', 'true'))"
        )
        works.sql(
            "CALL lake.system.expire_snapshots("
            "table => 'shop.works', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
        )

    changed = [{"id": n, "at": 3, "title": "c", "deleted": n == 4} for n in range(1, 5)]
    result = works.load(changed, at(step, compact))
    assert (result.rows.updated, result.rows.deleted) == (3, 1)
    assert titles(works) == {0: "b", 1: "c", 2: "c", 3: "c", 4: "a", 5: "a"}
    assert works.rows()[4]["deleted"] is True
    assert works.replayed() == works.rows()
    assert len(works.ops(3)) == 4


def test_arrow_table_and_frame_are_loaded_alike(make: Make) -> None:
    """What is handed over as Arrow, dictionaries or a frame has one hash: only the first is an insert."""
    works = make(lane="small", columns={"id": "bigint", "n": "bigint", "x": "double", "at": "timestamp"})
    rows: list[Row] = [
        {"id": 1, "n": 2, "x": 0.5, "at": moment(1)},
        {"id": 2, "n": None, "x": None, "at": None},
    ]
    assert works.load(rows).rows.inserted == 2
    kinds = {"id": pa.int32(), "n": pa.int16(), "x": pa.float32(), "at": pa.timestamp("ms", tz="UTC")}
    narrow = pa.table({name: pa.array([r[name] for r in rows], kind) for name, kind in kinds.items()})
    assert works.load(narrow).rows.unchanged == 2
    frame = works.project.engine.spark.sql(
        "SELECT * FROM VALUES (1L, 2L, 0.5D, TIMESTAMP '2026-01-01 00:00:00 UTC'), (2L, null, null, null)"
        " AS t(id, n, x, at)"
    )
    assert works.load(frame).rows.unchanged == 2
    works.change(lane="large")
    assert works.load(rows).rows.unchanged == 2


@large_in_soak
@pytest.mark.parametrize("version", [2, 3])
def test_partitions_of_numbers_that_are_none(make: Make, lane: str, version: int) -> None:
    """NaN, both infinities and −0.0 are partitions as others: their rows are found, and deleted once."""
    values = [float("nan"), float("inf"), -float("inf"), -0.0, 0.0, None, 1.5]
    works = make(lane=lane, deletes="hard", format_version=version, partition_by=["x"])
    works.load(batch(values, 0))
    works.load(batch(values, 100))
    files = works.sql(f"SELECT DISTINCT file_path f FROM {WORKS}.data_files")
    assert len(files) == 2 * len(values)
    for name in ("second", "third"):  # deletes of two files of each partition, which the next batch must find
        both = pa.concat_tables([batch(values, 0, name), batch(values, 100, name)])
        assert works.load(both).rows.updated == 2 * len(values)
        assert {row["name"] for row in works.rows().values()} == {name}
    assert len(works.rows()) == 2 * len(values)


def batch(values: list[float | None], begin: int, name: str = "first") -> pa.Table:
    """Return a row for each value, numbered on."""
    ids = pa.array(range(begin, begin + len(values)), pa.int64())
    return pa.table({"id": ids, "x": pa.array(values, pa.float64()), "name": [name] * len(values)})


def test_files_of_the_small_lane_end_at_the_size_that_the_table_says(make: Make) -> None:
    """A batch of many rows becomes several files, each about as large as `write.target-file-size-bytes`."""
    count = 70_000
    batch = pa.table(
        {"id": range(count), "title": [f"{number * 7919 % 65_537:x}" * 3 for number in range(count)]}
    )
    works = make(lane="small", properties={"write.target-file-size-bytes": "100000"})
    works.load(batch)
    files = works.sql(f"SELECT record_count, file_size_in_bytes AS size FROM {WORKS}.data_files")
    assert sorted(file.record_count for file in files) == [10_000, 20_000, 20_000, 20_000]
    works.change(properties={})
    works.load(pa.table({"id": range(count), "title": ["b"] * count}))
    files = works.sql(f"SELECT record_count FROM {WORKS}.data_files WHERE record_count = {count}")
    assert len(files) == 1, "half a gigabyte is not reached"
    assert works.sql(f"SELECT count(*), min(title), max(title) FROM {WORKS}") == [(count, "b", "b")]


# --- executors ------------------------------------------------------------------------------------


@pytest.mark.process
def test_executors_that_die_take_no_row_with_them(tmp_path: Path) -> None:
    """Rows of a large batch have numbers, and would have others if some were read again: all are read again.

    When they are lost too often, the run ends with RowsLost. On a small cluster, in a process of its own.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.load.lost_executor", str(tmp_path / "project")],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == [RowsLost.code]
