"""Avro and ORC files keep their types, or are refused with the names of file and column."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc

from esker.errors import ColumnRefused, PackingUnknown, SourceMalformed, SourceUnreadable, TypeConflict
from esker.ledger.file_versions import FileVersion
from esker.sources.files.avro_header import read_header
from esker.sources.files.found import FoundFile
from esker.sources.files.orc_footer import read_footer
from tests.folder import Folder

DAY = datetime.date(2026, 11, 17)
MOMENT = datetime.datetime(2026, 11, 17, 12, 30, 0, 123456, datetime.UTC)


def write_avro(path: Path, fields: list[Any], rows: list[dict[str, Any]], codec: str = "deflate") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        schema = fastavro.parse_schema({"type": "record", "name": "Row", "fields": fields})
        fastavro.writer(stream, schema, rows, codec=codec, sync_interval=100)
    return path


def field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind}


def found(path: Path) -> FoundFile:
    return FoundFile(FileVersion(path.name, path.stat().st_size, 0), path)


@pytest.fixture(params=["avro", "orc"])
def folder(request: pytest.FixtureRequest, make_folder: Callable[..., Folder]) -> Folder:
    return make_folder(pipelines={"sales": Folder.files_pipeline("landing/*", request.param)})


def write(folder: Folder, name: str, *, is_wide: bool = False, extra: bool = False) -> None:
    """Write a row into a file of the folder's format; a wide one has wider types."""
    path = folder.path / "landing" / name
    number, real = ("long", "double") if is_wide else ("int", "float")
    digits = (12, 3) if is_wide else (9, 2)
    row = {
        "id": 5 if is_wide else 1,
        "real": 0.5,
        "price": Decimal("1.50"),
        "day": DAY,
        "moment": MOMENT,
        "tags": ["a", None],
        "inner": {"x": 1} | ({"y": "new"} if extra else {}),
    }
    if folder.document["pipelines"]["sales"]["source"]["format"] == "avro":
        inner = {"type": "record", "name": "Inner", "fields": [field("x", number)]}
        inner["fields"] += [field("y", "string")] if extra else []  # type: ignore[operator]
        price = {"type": "bytes", "logicalType": "decimal", "precision": digits[0], "scale": digits[1]}
        fields = [
            field("id", number),
            field("real", real),
            field("price", ["null", price]),
            field("day", {"type": "int", "logicalType": "date"}),
            field("moment", {"type": "long", "logicalType": "timestamp-micros"}),
            field("tags", {"type": "array", "items": ["null", "string"]}),
            field("inner", inner),
        ]
        write_avro(path, fields, [row])
        return
    whole, point = (pa.int64(), pa.float64()) if is_wide else (pa.int32(), pa.float32())
    inside = [("x", whole), *([("y", pa.string())] if extra else [])]
    schema = pa.schema(
        [
            ("id", whole),
            ("real", point),
            ("price", pa.decimal128(*digits)),
            ("day", pa.date32()),
            ("moment", pa.timestamp("us")),
            ("tags", pa.list_(pa.string())),
            ("inner", pa.struct(inside)),
        ]
    )
    plain = row | {"moment": MOMENT.replace(tzinfo=None)}
    path.parent.mkdir(parents=True, exist_ok=True)
    orc.write_table(pa.Table.from_pylist([plain], schema), path, compression="zstd")


@pytest.mark.spark
def test_types_are_kept_and_widened(folder: Folder) -> None:
    """Two files with other types and fields in one batch, peek, a contract from the files, and again."""
    write(folder, "1")
    write(folder, "2", is_wide=True, extra=True)
    opened = folder.open()
    assert opened.peek("sales").rows[0]["id"] == 1
    inferred = opened.infer_contract("sales")
    assert {each.column.name: str(each.column.type) for each in inferred.columns} == {
        "id": "bigint",
        "real": "double",
        "price": "decimal(12,3)",
        "day": "date",
        "moment": "timestamp",
        "tags": "array<string>",
        "inner": "struct<x:bigint,y:string>",
    }
    assert folder.run().rows.inserted == 2
    one, two = folder.open().table("shop.sales").orderBy("id").collect()
    moment = MOMENT.replace(tzinfo=None)
    kept = (one.id, one.real, one.price, one.day, one.moment, one.tags, tuple(one.inner))
    assert kept == (1, 0.5, Decimal("1.500"), DAY, moment, ["a", None], (1, None))
    assert (two.id, tuple(two.inner)) == (5, (1, "new"))
    assert folder.run().rows.read == 0


@pytest.mark.spark
def test_contract_and_column_of_another_type(folder: Folder) -> None:
    write(folder, "1")
    folder.change(columns={"price": "int"})
    with pytest.raises(TypeConflict) as caught:
        folder.run()
    assert "price" in caught.value.reason


@pytest.mark.spark
def test_file_that_is_packed_as_a_whole(folder: Folder) -> None:
    write(folder, "1.gz")
    with pytest.raises(PackingUnknown) as caught:
        folder.run()
    assert "landing/1.gz" in caught.value.message
    assert "pack what is inside them" in caught.value.reason


@pytest.mark.spark
def test_file_that_is_cut(folder: Folder) -> None:
    """Neither is read as a shorter one."""
    write(folder, "1")
    path = folder.path / "landing" / "1"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises((SourceUnreadable, SourceMalformed), match="landing/1"):
        folder.run()


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ({"type": "int", "logicalType": "time-millis"}, "times of day"),
        (["null", {"type": "long", "logicalType": "timestamp-nanos"}], "nanoseconds"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2}, "40 digits"),
        ({"type": "array", "items": ["null", "Row"]}, "like itself"),
    ],
)
def test_avro_types_that_spark_reads_as_something_else(tmp_path: Path, kind: Any, why: str) -> None:
    path = write_avro(tmp_path / "a.avro", [field("id", "int"), field("odd", kind)], [])
    with pytest.raises(ColumnRefused) as caught:
        read_header(found(path))
    assert '"odd"' in caught.value.message
    assert why in caught.value.reason


def test_avro_names_that_differ_in_case(tmp_path: Path) -> None:
    inner = {"type": "record", "name": "Inner", "fields": [field("x", "int"), field("X", "int")]}
    path = write_avro(tmp_path / "a.avro", [field("inner", ["null", inner])], [])
    with pytest.raises(ColumnRefused, match=r"inner\.X"):
        read_header(found(path))


def test_avro_is_counted_block_by_block(tmp_path: Path) -> None:
    """Cut at any byte, the rows are never a wrong number without an error, but at the end of a block."""
    rows = [{"id": number, "text": "x" * 20} for number in range(50)]
    path = write_avro(tmp_path / "a.avro", [field("id", "int"), field("text", "string")], rows)
    whole = path.read_bytes()
    assert read_header(found(path)).rows == 50
    cuts = 0
    for size in range(len(whole) - 1, len(whole) - 300, -1):
        path.write_bytes(whole[:size])
        try:
            assert read_header(found(path)).rows < 50
        except SourceMalformed as error:
            cuts += "not complete" in error.reason
    assert cuts > 290
    path.write_bytes(whole[:-5] + b"wrong")
    with pytest.raises(SourceMalformed, match="malformed") as caught:
        read_header(found(path))
    assert "bytes were changed" in caught.value.reason
    path.write_bytes(b"id\n1\n")
    with pytest.raises(SourceUnreadable):
        read_header(found(path))


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        (pa.timestamp("ns"), 1001, "nanoseconds"),
        (pa.list_(pa.timestamp("ns")), [5_000, 1001], "nanoseconds"),
        (pa.struct([("x", pa.int32()), ("t", pa.timestamp("ns"))]), {"x": 1, "t": 1001}, "nanoseconds"),
        (pa.map_(pa.string(), pa.timestamp("ns")), [("a", 1001)], "nanoseconds"),
        (pa.timestamp("us", "UTC"), 1000, "local time zone"),
    ],
)
def test_orc_times_that_spark_would_cut(tmp_path: Path, kind: pa.DataType, value: Any, why: str) -> None:
    orc.write_table(pa.table({"id": [1], "odd": pa.array([value], kind)}), tmp_path / "a.orc")
    with pytest.raises(ColumnRefused) as caught:
        read_footer(found(tmp_path / "a.orc"))
    assert "odd" in caught.value.message
    assert why in caught.value.reason


def test_orc_times_in_microseconds(tmp_path: Path) -> None:
    times = pa.array([[1_000, None], None], pa.list_(pa.timestamp("ns")))
    orc.write_table(pa.table({"times": times}), tmp_path / "a.orc")
    assert read_footer(found(tmp_path / "a.orc")).rows == 2
