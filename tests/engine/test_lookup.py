"""Rows are found by key as a plain look at every row would find them, however a file is sorted."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.engine.iceberg import lookup, write
from esker.engine.iceberg.lookup import Keys, look_up
from esker.engine.iceberg.manifests import FileEntry, LiveFiles, entries_of
from esker.engine.iceberg.metrics import metrics
from esker.engine.iceberg.schema import FieldSchema, with_id
from esker.engine.iceberg.write import write_parquet
from esker.engine.store import LOCAL
from tests.engine.random_tables import every_type, random_rows

KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "text": (pa.string(), lambda n: f"{'ä' if n % 7 == 0 else 'k'}{n:05}"),
    "whole number": (pa.int64(), lambda n: n - 500),
    "date": (pa.date32(), lambda n: date(2020, 1, 1) + timedelta(days=n)),
    "moment": (pa.timestamp("us", tz="UTC"), lambda n: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=n)),
    "decimal": (pa.decimal128(12, 2), lambda n: Decimal(n).scaleb(-2)),
    "bytes": (pa.binary(), lambda n: n.to_bytes(3, "big")),
}


def table_of(path: Path, rows: pa.Table, row_group_size: int) -> tuple[LiveFiles, FieldSchema]:
    pq.write_table(rows, path, row_group_size=row_group_size)
    entry = FileEntry(
        0,
        f"file://{path}",
        "PARQUET",
        len(rows),
        path.stat().st_size,
        1,
        1,
        1,
        0,
        (),
        {},
        {},
        None,
        None,
        None,
    )
    ids = {field.name: number for number, field in enumerate(rows.schema, 1)}
    return LiveFiles((entry,)), FieldSchema(0, rows.schema, True, ids, {})


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search also in parts as small as those of these tests."""
    monkeypatch.setattr(lookup, "_FEW", 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["sorted", "shuffled", "sorted with copies"])
def test_one_key(tmp_path: Path, kind: str, order: str) -> None:
    arrow, value = KINDS[kind]
    chance = random.Random(f"{kind} {order}")
    numbers = [chance.randrange(400 if "copies" in order else 10**4) for _ in range(2000)]
    values = [value(number) for number in (numbers if "copies" in order else set(numbers))]
    values.sort()
    if order == "shuffled":
        chance.shuffle(values)
    schema = pa.schema([with_id("id", arrow, 1), with_id("n", pa.int64(), 2)])
    rows = pa.table([values, range(len(values))], schema=schema)
    files, fields = table_of(tmp_path / "data.parquet", rows, row_group_size=300)
    for count in (1, 5, 40, 900):
        asked = list({value(chance.randrange(10**4)) for _ in range(count)} | set(chance.sample(values, 3)))
        check(files, fields, Keys(pa.table([asked], schema=schema.remove(1))), rows)


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_key_of_two_columns(tmp_path: Path, order: str) -> None:
    """The first column alone finds too many: the second one decides."""
    chance = random.Random(order)
    pairs = sorted({(f"r{chance.randrange(60)}", chance.randrange(50)) for _ in range(1500)})
    if order == "shuffled":
        chance.shuffle(pairs)
    columns = [("region", pa.string()), ("id", pa.int32()), ("n", pa.int64())]
    schema = pa.schema([with_id(name, kind, number) for number, (name, kind) in enumerate(columns, 1)])
    rows = pa.table([*zip(*pairs, strict=True), range(len(pairs))], schema=schema)
    files, fields = table_of(tmp_path / "data.parquet", rows, row_group_size=200)
    for count in (1, 10, 300):
        asked = list({*chance.sample(pairs, count), ("r1", 77), ("r99", 1)})
        check(files, fields, Keys(pa.table([*zip(*asked, strict=True)], schema=schema.remove(2))), rows)


def test_sorted_rows_are_not_all_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a small batch does not grow with the file."""
    looked: list[int] = []
    joined = lookup.joined

    def counting(keys: pa.Table) -> pa.Array:
        looked.append(len(keys))
        return joined(keys)

    schema = pa.schema([with_id("id", pa.string(), 1), with_id("n", pa.int64(), 2)])
    for order in ("sorted", "not"):
        values = [f"k{number:06}" for number in range(50_000)]
        if order == "not":
            values[7], values[8] = values[8], values[7]
        rows = pa.table([values, range(len(values))], schema=schema)
        files, fields = table_of(tmp_path / f"{order}.parquet", rows, row_group_size=50_000)
        keys = Keys(pa.table([["k000003", "k049999", "nothing"]], schema=schema.remove(1)))
        with monkeypatch.context() as patch:
            patch.setattr(lookup, "joined", counting)
            look_up(files, fields, keys, ["n"])
        check(files, fields, keys, rows)
    assert looked == [2, 50_000]


@pytest.mark.parametrize("tables", [60, pytest.param(6_000, marks=pytest.mark.soak)])
def test_every_key_of_random_tables_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: int
) -> None:
    """With the bounds that Esker writes, no file and no row group that holds a key is left out."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    kinds = [field.type for field in every_type() if not pa.types.is_floating(field.type)]
    for number in range(tables):
        chance = random.Random(f"{seed} {number}")
        keys = chance.sample([kind for kind in kinds if kind != pa.binary()], chance.choice([1, 1, 2]))
        schema = pa.schema([with_id(f"k{place}", kind, place) for place, kind in enumerate(keys, 1)])
        some = random_rows(chance, schema, chance.choice([1, 30, 100]), 10).drop_null()
        if not len(some):
            continue
        whole = some.append_column(with_id("n", pa.int64(), 9), pa.array(range(len(some)), pa.int64()))
        monkeypatch.setattr(write, "_ROW_GROUP", chance.choice([3, 10, 200]))
        location = tmp_path / f"{number}.parquet"
        _, footer = write_parquet(LOCAL, str(location), whole, "zstd")
        files, fields = table_of(location, whole, row_group_size=write._ROW_GROUP)
        cut = {"write.metadata.metrics.default": chance.choice(["truncate(1)", "truncate(16)", "full"])}
        told = metrics(footer, whole.schema, cut, whole)
        lower, upper = (
            {id: bytes.fromhex(bound) for id, bound in zip(*told[name].values(), strict=True)}
            for name in ("lower-bounds", "upper-bounds")
        )
        files = replace(files, data=tuple(replace(file, lower=lower, upper=upper) for file in files.data))
        distinct = some.group_by(some.column_names, use_threads=False).aggregate([])
        for asked in (distinct, distinct.slice(chance.randrange(len(distinct)), 1)):
            check(files, fields, Keys(asked), whole)
        location.unlink()


def test_text_bounds_that_are_cut_inside_a_character(tmp_path: Path) -> None:
    """Another engine may cut bytes: the rest of a character is no replacement character."""
    schema = pa.schema([with_id("id", pa.string(), 1), with_id("n", pa.int64(), 2)])
    for number, (low, high) in enumerate([(b"a\xf0\x9f", b"b"), (b"a", b"a\xf1"), (b"a\xf0", b"a\xf0\xa0")]):
        rows = pa.table([["a😀"], [0]], schema=schema)
        files, fields = table_of(tmp_path / f"{number}.parquet", rows, row_group_size=10)
        files = replace(
            files, data=tuple(replace(file, lower={1: low}, upper={1: high}) for file in files.data)
        )
        check(files, fields, Keys(pa.table([["a😀"]], schema=schema.remove(1))), rows)


def test_partitions_are_those_of_iceberg() -> None:
    """NaN is one partition; −0.0 and 0.0 are two: deletes of one are none of the other's."""
    nan, zero = float("nan"), 0.0

    def entry(content: int, path: str, value: float) -> FileEntry:
        file = {
            "content": content,
            "file_path": path,
            "file_format": "PARQUET",
            "record_count": 1,
            "file_size_in_bytes": 1,
            "partition": {"x": value},
        }
        record = {"status": 1, "snapshot_id": 1, "sequence_number": 1 + content, "data_file": file}
        [found] = entries_of([record], 1, 0, 1)
        return found

    values = {"nan": nan, "zero": zero, "negative": -zero, "one": 1.0}
    data = {name: entry(0, name, value) for name, value in values.items()}
    deletes = {name: entry(1, f"{name}-delete", value * 1) for name, value in values.items()}
    files = LiveFiles(tuple(data.values()), tuple(deletes.values()))
    for name, file in data.items():
        assert files.deletes_of(file) == [deletes[name]], name
        assert files.deletes_in((0, file.partition)) == [deletes[name]], name
    assert len({file.partition for file in (*data.values(), *deletes.values())}) == len(values)


def check(files: LiveFiles, schema: FieldSchema, keys: Keys, rows: pa.Table) -> None:
    found, looked_at = look_up(files, schema, keys, ["n"])
    wanted = {key: index for index, key in enumerate(keys.values.to_pylist())}
    stored = lookup.joined(rows.select(keys.names)).to_pylist()
    expected = [(place, wanted[key]) for place, key in enumerate(stored) if key in wanted]
    told = [
        (place, asked, number)
        for hits in found
        for place, asked, number in zip(
            hits.positions.to_pylist(),
            hits.asked.to_pylist(),
            hits.rows.column("n").to_pylist(),
            strict=True,
        )
    ]
    assert told == [(place, asked, place) for place, asked in expected]
    assert expected
    assert [file.path for file in looked_at] == [file.path for file in files.data]
