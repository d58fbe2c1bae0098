"""What Esker says of the files it writes, beside what Iceberg itself reads from their footers."""

from __future__ import annotations

import json
import math
import random
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.engine.iceberg import write
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.content_file import as_object
from esker.engine.iceberg.create import NewTable, create
from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.metrics import metrics
from esker.engine.iceberg.table import TableId
from esker.engine.iceberg.write import TARGET_SIZE, target_size, write_parquet
from esker.engine.store import LOCAL
from esker.project.types import Column, parse_type
from tests.engine.random_tables import (
    Values,
    every_type,
    in_order,
    random_rows,
    random_schema,
    type_name,
    values_of,
)
from tests.folder import Folder

_COLUMNS = {
    "flag": "boolean",
    "small": "int",
    "large": "bigint",
    "single": "float",
    "negative": "float",
    "double": "double",
    "day": "date",
    "moment": "timestamp",
    "local": "timestamp_ntz",
    "text": "string",
    "bytes": "binary",
    "price": "decimal(12,2)",
    "vast": "decimal(30,3)",
    "inner": "struct<x: int, deep: struct<z: string>>",
    "many": "array<string>",
    "rows": "array<struct<q: int>>",
    "pairs": "map<string, bigint>",
    "a.b": "string",
    "nothing": "string",
}
_VALUES: dict[str, list[Any]] = {
    "flag": [True, False, None],
    "small": [1, -5, None],
    "large": [2**40, -(2**50), 3],
    "single": [1.5, float("nan"), -0.0],
    "negative": [-1.5, -7.25, -0.0],
    "double": [1.5, -2.5, 1e300],
    "day": [date(2020, 1, 1), date(1969, 12, 31), None],
    "moment": [datetime(2020, 1, 1, tzinfo=UTC), datetime(1900, 1, 1, 0, 0, 0, 1, tzinfo=UTC), None],
    "local": [datetime(1969, 1, 1, 0, 0, 0, 5), None, datetime(2038, 1, 1)],
    "text": ["héllo wörld this is long 😀", "\U0010ffff" * 20, "ab\ud7ff" * 6],
    "bytes": [b"\xff" * 20, b"\x00", b"\x01" * 17],
    "price": [Decimal("-1.28"), Decimal("1.27"), Decimal("-327.68")],
    "vast": [Decimal("123456789012345678901.500"), Decimal("-0.001"), None],
    "inner": [{"x": 1, "deep": {"z": "a" * 30}}, {"x": None, "deep": None}, None],
    "many": [["a", None], [], None],
    "rows": [[{"q": 1}], None, []],
    "pairs": [[("k", 1)], [], None],
    "a.b": ["dotted", None, "d"],
    "nothing": [None, None, None],
}


_PROPERTIES: tuple[dict[str, str], ...] = (
    {},
    {"write.metadata.metrics.default": "counts", "write.metadata.metrics.column.text": "full"},
    {"write.metadata.metrics.default": "truncate(3)", "write.metadata.metrics.column.inner.x": "none"},
)


@pytest.mark.spark
def test_metrics_are_those_that_iceberg_finds(tmp_path: Path) -> None:
    """Sizes, counts and bounds of every type, nested ones too, in a file of several row groups."""
    engine = Folder(tmp_path / "project").open().engine
    engine.open_catalog("lake")
    columns = tuple(Column(name, parse_type(kind)) for name, kind in _COLUMNS.items())
    for number, properties in enumerate(_PROPERTIES):
        table = TableId("lake", f"db.t{number}")
        create(engine, NewTable(table, columns, (), properties | {"format-version": "2"}))
        attempt = Attempt(engine, table)
        rows = pa.table(
            [pa.array(_in_groups(field.name), field.type) for field in attempt.schema.arrow],
            schema=attempt.schema.arrow,
        )
        (file,) = attempt.write(rows, "one").handles
        ours, theirs = _document(attempt, file), _document(attempt, _measured_by_iceberg(attempt, file))
        assert len(ours.pop("split-offsets")) == 3
        assert theirs.pop("nan-value-counts") == {}  # footers do not tell
        assert ours.pop("nan-value-counts") == {4: 20_000, 5: 0, 6: 0}
        assert ours == theirs
        assert ours["lower-bounds"]


def _in_groups(column: str) -> list[Any]:
    """Return values such that each row group holds another one: bounds are compared across groups."""
    if column == "single":  # a row group of NaN alone has no bounds: ours then give none, Iceberg's do
        return _VALUES[column] * 20_000
    return [value for value in _VALUES[column] for _ in range(20_000)]


def _measured_by_iceberg(attempt: Attempt, file: Any) -> Any:
    jvm, table = attempt._jvm, attempt._table
    measured = iceberg(jvm, "parquet.ParquetUtil").fileMetrics(
        table.io().newInputFile(file.location()), iceberg(jvm, "MetricsConfig").forTable(table)
    )
    builder = iceberg(jvm, "DataFiles").builder(table.spec()).withPath(file.location()).withFormat("parquet")
    return builder.withFileSizeInBytes(file.fileSizeInBytes()).withMetrics(measured).build()


def _document(attempt: Attempt, file: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        iceberg(attempt._jvm, "ContentFileParser").toJson(
            as_object(attempt._jvm, attempt._table, file), attempt._table.spec()
        )
    )
    maps = {name: value for name, value in document.items() if isinstance(value, dict)}
    return document | {name: dict(zip(*value.values(), strict=True)) for name, value in maps.items()}


_MODES = ("none", "counts", "truncate(1)", "truncate(3)", "truncate(16)", "full")


@pytest.mark.parametrize("tables", [60, pytest.param(6_000, marks=pytest.mark.soak)])
def test_metrics_say_what_the_values_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: int
) -> None:
    """Counts are exact, and no value lies outside of the bounds: no reader may leave out a file for them."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    for number in range(tables):
        chance = random.Random(f"{seed} {number}")
        schema = every_type() if not number else random_schema(chance, 8)
        rows = random_rows(chance, schema, chance.choice([1, 5, 40, 200]), 10)
        mode = chance.choice(_MODES)
        properties = {"write.metadata.metrics.default": mode}
        location = f"{tmp_path}/{number}.parquet"
        monkeypatch.setattr(write, "_ROW_GROUP", chance.choice([7, 10, 200]))
        _, footer = write_parquet(LOCAL, location, rows, "zstd")
        found = metrics(footer, schema, properties, rows)
        Path(location).unlink()
        told = {name: dict(zip(*each.values(), strict=True)) for name, each in found.items()}
        for column in values_of(rows):
            check_column(column, mode, told)


def check_column(column: Values, mode: str, told: dict[str, dict[int, Any]]) -> None:
    """Compare what is said of a column with its values."""
    own = {name: each[column.id] for name, each in told.items() if column.id in each}
    if mode == "none":
        assert own == {}
        return
    nan = [value for value in column.values if is_nan(value)]
    known = [value for value in column.values if value is not None and not is_nan(value)]
    assert own.pop("column-sizes") > 0
    assert own.pop("value-counts") == len(column.values)
    assert own.pop("null-value-counts") == column.values.count(None)
    assert own.pop("nan-value-counts", None) == (len(nan) if pa.types.is_floating(column.type) else None)
    if mode == "counts" or not known:
        assert own == {}
        return
    if not own:
        assert is_too_long(column)
        return
    low, values = decoded(own.pop("lower-bounds"), column.type), sorted(map(in_order, known))
    assert in_order(low) <= values[0]
    high = decoded(own.pop("upper-bounds"), column.type) if "upper-bounds" in own else None
    assert own == {}
    if high is not None:
        assert values[-1] <= in_order(high)
    if mode == "full" or not isinstance(low, str | bytes):
        assert low == known[[in_order(value) for value in known].index(values[0])] or low == 0
        assert high == known[[in_order(value) for value in known].index(values[-1])] or high == 0
    else:
        cut = int(mode[9:-1])
        assert len(low) <= cut
        assert high is not None or set(max(known)[:cut]) <= {"\U0010ffff", 0xFF}
        assert high is None or len(high) <= cut


def decoded(bound: str, kind: pa.DataType) -> Any:
    """Read a bound as Iceberg's specification says."""
    content = bytes.fromhex(bound)
    match kind:
        case _ if pa.types.is_decimal(kind):
            number = int.from_bytes(content, "big", signed=True)
            assert len(content) == max(1, ((number if number >= 0 else -number - 1).bit_length() + 8) // 8)
            return Decimal(number).scaleb(-kind.scale, Context(prec=38))
        case _ if pa.types.is_floating(kind):
            return struct.unpack("<f" if kind == pa.float32() else "<d", content)[0]
        case _ if kind == pa.string():
            return content.decode()
        case _ if kind == pa.binary():
            return content
        case _ if kind == pa.bool_():
            return bool(content[0])
    number = int.from_bytes(content, "little", signed=True)
    assert len(content) * 8 == kind.bit_width
    if kind == pa.date32():
        return date(1970, 1, 1) + timedelta(days=number)
    if pa.types.is_timestamp(kind):
        return datetime(1970, 1, 1, tzinfo=UTC if kind.tz else None) + timedelta(microseconds=number)
    return number


@pytest.mark.spark
@pytest.mark.parametrize("tables", [3, pytest.param(150, marks=pytest.mark.soak)])
def test_metrics_of_random_tables_are_icebergs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: int
) -> None:
    """Iceberg finds the same in the same files, but the counts of NaN, which footers do not have."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    engine = Folder(tmp_path / "project").open().engine
    engine.open_catalog("lake")
    for number in range(tables):
        chance = random.Random(f"{seed} {number}")
        schema = every_type() if not number else random_schema(chance, 30)
        columns = tuple(Column(field.name, parse_type(type_name(field.type))) for field in schema)
        properties = {"format-version": "2", "write.metadata.metrics.default": chance.choice(_MODES[1:])}
        table = TableId("lake", f"db.t{number}")
        create(engine, NewTable(table, columns, (), properties))
        attempt = Attempt(engine, table)
        for rows in (5, 100):
            monkeypatch.setattr(write, "_ROW_GROUP", chance.choice([7, 10, 200]))
            content = random_rows(chance, attempt.schema.arrow, rows, 10)
            (file,) = attempt.write(content, f"rows{rows}").handles
            ours, theirs = _document(attempt, file), _document(attempt, _measured_by_iceberg(attempt, file))
            ours.pop("split-offsets")
            assert theirs.pop("nan-value-counts") == {}
            columns_of_rows = list(values_of(content))
            counted = {column.id for column in columns_of_rows if pa.types.is_floating(column.type)}
            assert set(ours.pop("nan-value-counts")) == counted
            for column in columns_of_rows:
                if is_too_long(column) and column.id not in ours["lower-bounds"]:
                    for bounds in ("lower-bounds", "upper-bounds"):
                        theirs[bounds].pop(column.id, None)  # those of the other row groups
            assert ours == theirs
            (taken,) = attempt.adopt([(file.location(), file.fileSizeInBytes())]).handles
            check_taken(_document(attempt, taken), columns_of_rows)


def check_taken(told: dict[str, Any], columns: list[Values]) -> None:
    """Check what is said of a file that was measured by its footer alone."""
    assert told["nan-value-counts"] == {}
    for column in columns:
        low, high = (told[bounds].get(column.id) for bounds in ("lower-bounds", "upper-bounds"))
        known = [in_order(value) for value in column.values if value is not None]
        if low is not None:
            assert not pa.types.is_floating(column.type), "a reader would take it for one without NaN"
            assert in_order(decoded(low, column.type)) <= min(known)
        if high is not None:
            assert max(known) <= in_order(decoded(high, column.type))


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def is_too_long(column: Values) -> bool:
    """Tell whether Arrow gives no bounds of a row group of a column, for its values are too long."""
    return any(isinstance(value, str | bytes) and len(value) > 1_000 for value in column.values)


def test_no_file_of_wide_rows_is_larger_than_512_mb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where 20,000 rows, the most of a row group, are more; tried with files of one megabyte."""
    monkeypatch.setattr(write, "_LARGEST", 2**20)
    monkeypatch.setattr(write, "_GROUP_BYTES", 2**18)
    chance = random.Random(1)
    documents = [chance.randbytes(1_000 + 200 * (number % 10)) for number in range(4_000)]
    rows = pa.table({"id": range(len(documents)), "document": documents})
    files = list(write._rolled(rows, "zstd", 2**20, {}))
    assert max(content.size for _, content, _ in files) <= 2**20
    assert len(files) < 12, "as large as they may be"
    assert pa.concat_tables(part for part, _, _ in files) == rows
    assert pa.concat_tables(pq.read_table(pa.BufferReader(content)) for _, content, _ in files) == rows
    groups = [footer.row_group(0).num_rows for _, _, footer in files]
    assert max(groups) < 200


def test_no_file_of_the_small_lane_is_larger_than_512_mb() -> None:
    """Files end at the size that the table says, and not beyond one that this process can hold."""
    sizes = {"1000": 1000, str(2**29): 2**29, str(2**30): 2**29}
    assert {text: target_size({TARGET_SIZE: text}) for text in sizes} == sizes
    assert target_size({}) == 2**29
