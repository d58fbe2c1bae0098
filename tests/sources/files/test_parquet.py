"""Parquet files of one batch are read with types wide enough for all, or refused with file and column."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.errors import ColumnRefused, EskerError
from tests.folder import Folder

pytestmark = pytest.mark.spark


@pytest.fixture
def folder(make_folder: Callable[..., Folder]) -> Folder:
    return make_folder(pipelines={"sales": Folder.files_pipeline("landing/*.parquet", "parquet")})


def write(folder: Folder, name: str, columns: dict[str, Any], **options: Any) -> None:
    pq.write_table(pa.table(columns), folder.path / "landing" / f"{name}.parquet", **options)


def refused(folder: Folder) -> EskerError:
    with pytest.raises(ColumnRefused) as caught:
        folder.run()
    return caught.value


def test_numbers_are_widened_within_a_batch(folder: Folder) -> None:
    """int beside bigint, float beside double, decimals of other sizes, also inside lists and structs."""
    write(
        folder,
        "a",
        {
            "n": pa.array([1], pa.int32()),
            "f": pa.array([0.5], pa.float32()),
            "d": pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
            "i": pa.array([7], pa.int32()),
            "s": pa.array([{"x": 1}], pa.struct([("x", pa.int32())])),
            "l": pa.array([[1]], pa.list_(pa.int16())),
        },
    )
    write(
        folder,
        "b",
        {
            "N": pa.array([2**40], pa.int64()),
            "f": pa.array([0.1], pa.float64()),
            "d": pa.array([Decimal("12345678901234567890.125")], pa.decimal128(30, 3)),
            "i": pa.array([Decimal("1.5")], pa.decimal128(20, 1)),
            "s": pa.array([{"x": 2**40, "y": "q"}], pa.struct([("x", pa.int64()), ("y", pa.string())])),
            "l": pa.array([[2**40]], pa.list_(pa.int64())),
        },
    )
    folder.run()
    table = folder.open().table("shop.sales")
    assert dict(table.dtypes) == {
        "n": "bigint",
        "f": "double",
        "d": "decimal(30,3)",
        "i": "decimal(20,1)",
        "s": "struct<x:bigint,y:string>",
        "l": "array<bigint>",
    }
    assert [tuple(row) for row in table.orderBy("n").collect()] == [
        (1, 0.5, Decimal("1.250"), Decimal("7.0"), (1, None), [1]),
        (2**40, 0.1, Decimal("12345678901234567890.125"), Decimal("1.5"), (2**40, "q"), [2**40]),
    ]


def test_fields_are_found_by_name_within_a_batch(folder: Folder) -> None:
    """Files have the same fields in another order, in structs, lists and maps, and some only in one file."""

    def people(*fields: str) -> dict[str, Any]:
        of_all = {"name": pa.string(), "city": pa.string(), "age": pa.int32(), "NAME": pa.string()}
        one = {field: 7 if field == "age" else field.lower() for field in fields}
        kind = pa.struct([(field, of_all[field]) for field in fields])
        keyed = pa.map_(pa.string(), kind)
        return {
            "struct": pa.array([one, None], kind),
            "list": pa.array([[one, None], None], pa.list_(kind)),
            "map": pa.array([[("k", one), ("n", None)], None], keyed),
            "deep": pa.array([[[("k", [one])]], [None]], pa.list_(pa.map_(pa.string(), pa.list_(kind)))),
            "keys": pa.array([[(one, 1)], None], pa.map_(kind, pa.int32())),
        }

    write(folder, "a", people("name", "city"))
    write(folder, "b", people("city", "name"))
    write(folder, "c", people("age", "city", "NAME"))
    folder.run()
    found = folder.open().table("shop.sales").where("struct IS NOT NULL").orderBy("struct.age").collect()
    for row, age in zip(found, (None, None, 7), strict=True):
        one = ("name", "city", age)
        assert tuple(row) == (one, [one, None], {"k": one, "n": None}, [{"k": [one]}], {one: 1})
    empty = folder.open().table("shop.sales").where("struct IS NULL").collect()
    assert [tuple(row) for row in empty] == [(None, None, None, [None], None)] * 3


def test_types_without_a_common_one_are_refused(folder: Folder) -> None:
    """The message names file, column and both types."""
    write(folder, "a", {"s": pa.array([{"x": 1}])})
    write(folder, "b", {"s": pa.array([{"x": "one"}])})
    error = refused(folder)
    assert 'column "s.x" of file "landing/b.parquet"' in error.message
    assert "string there and bigint in other files" in error.reason


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        (pa.timestamp("ns"), 1, "nanoseconds"),
        (pa.time64("us"), 1, "times of day"),
        (pa.decimal256(50, 2), Decimal(1), "50 digits"),
        (pa.float16(), 1.5, "16 bits"),
    ],
    ids=str,
)
def test_type_that_spark_cannot_keep(folder: Folder, kind: pa.DataType, value: Any, why: str) -> None:
    """Such a column is refused with its file, at any depth."""
    write(folder, "a", {"id": [1], "v": pa.array([value], kind)})
    error = refused(folder)
    assert 'column "v" of file "landing/a.parquet"' in error.message
    assert why in error.reason
    write(folder, "a", {"id": [1], "o": pa.array([{"v": value}], pa.struct([("v", kind)]))})
    assert 'column "o.v"' in refused(folder).message


def test_old_timestamps_are_loaded_unless_digits_would_be_cut(folder: Folder) -> None:
    """INT96 has room for nanoseconds: the values decide."""
    old = {"use_deprecated_int96_timestamps": True}
    write(folder, "a", {"at": pa.array([1_000_001_000], pa.timestamp("ns"))}, **old)
    folder.run()
    assert folder.rows() == [(datetime(1970, 1, 1, 0, 0, 1, 1),)]
    write(folder, "b", {"at": pa.array([None, 1_000_000_001], pa.timestamp("ns"))}, **old)
    assert "nanoseconds" in refused(folder).reason
    nested = pa.array([[1_000_000_001]], pa.list_(pa.timestamp("ns")))
    write(folder, "b", {"list": nested}, **old)
    assert "nanoseconds" in refused(folder).reason


def test_names_that_differ_in_case_within_a_file(folder: Folder) -> None:
    """Spark takes both as one."""
    table = pa.table([[1], [2]], names=["id", "ID"])
    pq.write_table(table, folder.path / "landing/a.parquet")
    error = refused(folder)
    assert 'column "ID" of file "landing/a.parquet"' in error.message
    assert "twice" in error.reason


def test_column_called_like_sparks_own(folder: Folder) -> None:
    """`_metadata` is a name like any other."""
    write(folder, "a", {"_metadata": ["x"]})
    folder.run()
    assert folder.rows() == [("x",)]
