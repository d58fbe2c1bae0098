"""What Esker says of the files it writes, beside what Iceberg itself reads from their footers."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.create import NewTable, create
from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.table import TableId
from esker.project.types import Column, parse_type
from tests.folder import Folder

pytestmark = pytest.mark.spark

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
        iceberg(attempt._jvm, "ContentFileParser").toJson(file, attempt._table.spec())
    )
    maps = {name: value for name, value in document.items() if isinstance(value, dict)}
    return document | {name: dict(zip(*value.values(), strict=True)) for name, value in maps.items()}
