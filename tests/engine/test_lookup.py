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
from esker.engine.iceberg.manifests import FileEntry, KeptManifests, LiveFiles, SpecField, entries_of
from esker.engine.iceberg.metrics import metrics
from esker.engine.iceberg.partition_transform import transformed
from esker.engine.iceberg.pruning import Values
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


def test_deletes_by_value_name_no_places() -> None:
    """Also where they are of the same partition as a data file, and one of its columns has bounds."""

    def entry(content: int, path: str, **facts: Any) -> FileEntry:
        file = {
            "content": content,
            "file_path": path,
            "file_format": "PARQUET",
            "record_count": 2,
            "file_size_in_bytes": 1,
            "partition": {},
        }
        record = {"status": 1, "snapshot_id": 1, "sequence_number": 1 + content, "data_file": file | facts}
        [found] = entries_of([record], 1, 0, 1)
        return found

    data, places = entry(0, "data"), entry(1, "places")
    bounds = {"lower_bounds": [{"key": 1, "value": b"a"}], "upper_bounds": [{"key": 1, "value": b"z"}]}
    values = entry(2, "values", equality_ids=[1], **bounds)
    files = LiveFiles((data,), (values, places))
    assert files.has_equality_deletes
    assert files.deletes_of(data) == [places]
    assert files.deletes_in((0, ())) == [places]


def test_rows_of_a_file_come_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those that come together, in their order, without those that are deleted."""
    monkeypatch.setattr(lookup, "_PART", 7)
    schema = pa.schema([with_id("id", pa.int64(), 1), with_id("n", pa.string(), 2)])
    rows = pa.table([range(100), [f"r{number}" for number in range(100)]], schema=schema)
    files, fields = table_of(tmp_path / "rows.parquet", rows, row_group_size=30)
    [file] = files.data
    gone = [0, 6, 7, 29, 30, 31, 59, 99]
    places = pa.table({"file_path": [file.path] * len(gone), "pos": gone})
    pq.write_table(places, tmp_path / "deletes.parquet")
    delete = replace(file, content=1, path=f"file://{tmp_path}/deletes.parquet", format="parquet", sequence=2)
    for files_ in (files, replace(files, deletes=(delete,))):
        parts = list(lookup.live_parts(files_, fields, file))
        whole = lookup.live_rows(files_, fields, [file])
        assert pa.concat_tables(parts) == whole
        assert len(whole) == 100 - len(gone) * bool(files_.deletes)
        assert max(map(len, parts)) <= 7


def stored(value: Any) -> bytes:
    """Return a value as Iceberg's manifests hold it."""
    match value:
        case bool():
            return bytes([value])
        case int():
            return value.to_bytes(8, "little", signed=True)
        case str():
            return value.encode()
        case bytes():
            return value
        case Decimal():
            return int(value.scaleb(2)).to_bytes(9, "big", signed=True)
        case datetime():
            return stored((value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))
        case date():
            return (value - date(1970, 1, 1)).days.to_bytes(4, "little", signed=True)
    raise AssertionError(value)


def several(path: Path, parts: list[pa.Table], **facts: Any) -> tuple[LiveFiles, FieldSchema]:
    """Return a table of one file for each part, with bounds; `facts` give each file's partition."""
    entries = []
    for number, part in enumerate(parts):
        files, schema = table_of(path / f"{number}.parquet", part, row_group_size=50)
        [entry] = files.data
        columns = {schema.ids[name]: part.column(name).to_pylist() for name in part.column_names}
        entries.append(
            replace(
                entry,
                lower={number: stored(min(values)) for number, values in columns.items()},
                upper={number: stored(max(values)) for number, values in columns.items()},
                partition=facts["partitions"][number] if "partitions" in facts else (),
            )
        )
    return LiveFiles(tuple(entries), spec_of=lambda spec_id: facts.get("spec", ())), schema


PRUNED = {name: kind for name, kind in KINDS.items() if name != "bytes"} | {
    "before 1970": (pa.date32(), lambda n: date(1970, 1, 1) + timedelta(days=n - 500)),
    "negative decimal": (pa.decimal128(12, 2), lambda n: Decimal(n - 500).scaleb(-2)),
    "moment before 1970": (
        pa.timestamp("us", tz="UTC"),
        lambda n: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=n - 500),
    ),
}


@pytest.mark.parametrize("kind", PRUNED)
@pytest.mark.parametrize("place", ["first", "second"])
def test_files_and_groups_are_left_out_by_each_column_of_the_key(
    tmp_path: Path, kind: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the file, and in it the row groups, whose bounds hold a key are read."""
    arrow, value = PRUNED[kind]
    names = ["k", "same"] if place == "first" else ["same", "k"]
    columns = {"k": arrow, "same": pa.bool_(), "n": pa.int64()}
    schema = pa.schema([with_id(name, columns[name], i) for i, name in enumerate([*names, "n"], 1)])
    # The whole numbers are in order, and so are what is made of them, but for texts with an umlaut.
    every = sorted(value(number) for number in range(1000))
    parts = [
        pa.table({"k": every[i : i + 200], "same": [True] * 200, "n": range(200)})
        .select(schema.names)
        .cast(schema)
        for i in range(0, 1000, 200)
    ]
    files, fields = several(tmp_path, parts)
    asked = [every[410], every[415]]
    keys = Keys(pa.table({"k": asked, "same": [True, True]}).select(names).cast(schema.remove(2)))
    read: list[list[int]] = []
    groups = lookup._groups

    def watched(*arguments: Any) -> tuple[list[int], list[int]]:
        found = groups(*arguments)
        read.append(found[0])
        return found

    monkeypatch.setattr(lookup, "_groups", watched)
    found, looked_at = look_up(files, fields, keys, ["n"])
    assert looked_at == [files.data[2]]
    assert read == [[0]]
    assert [hits.positions.to_pylist() for hits in found] == [[10, 15]]


def test_flag_in_the_key(tmp_path: Path) -> None:
    """A file with the other value alone is not opened."""
    schema = pa.schema([with_id("flag", pa.bool_(), 1), with_id("n", pa.int64(), 2)])
    parts = [pa.table([[flag] * 3, range(3)], schema=schema) for flag in (False, True)]
    files, fields = several(tmp_path, parts)
    _, looked_at = look_up(files, fields, Keys(pa.table([[True]], schema=schema.remove(1))), ["n"])
    assert looked_at == [files.data[1]]


SPECS: dict[str, tuple[SpecField, ...]] = {
    "bucket": (SpecField(2, "bucket[8]"),),
    "tenant, bucket": (SpecField(1, "identity"), SpecField(2, "bucket[8]")),
    "void, truncate": (SpecField(7, "void"), SpecField(2, "truncate[100]")),
    "not of the key": (SpecField(3, "identity"),),
    "day": (SpecField(4, "day"),),
}


@pytest.mark.parametrize("name", SPECS)
def test_files_and_manifests_are_left_out_by_partition(tmp_path: Path, name: str) -> None:
    """Only partitions that a key belongs to are opened, and none is missed."""
    chance = random.Random(name)
    kinds = [
        ("tenant", pa.string()),
        ("id", pa.int64()),
        ("n", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
    schema = pa.schema([with_id(column, kind, number) for number, (column, kind) in enumerate(kinds, 1)])
    begin = datetime(1969, 12, 25, tzinfo=UTC)
    whole = pa.table(
        [
            [f"t{number % 5}" for number in range(600)],
            range(600),
            [number % 3 for number in range(600)],
            [begin + timedelta(hours=number % 240) for number in range(600)],
        ],
        schema=schema,
    )
    spec = SPECS[name]
    columns = {number: column for number, (column, _) in enumerate(kinds, 1)}
    told = pa.table(
        [transformed(whole, columns.get(field.source), field.transform) for field in spec],
        names=[str(number) for number in range(len(spec))],
    )
    rows = list(zip(*(column.to_pylist() for column in told.columns), strict=True))
    partitions = sorted(set(rows), key=repr)
    parts = [whole.filter(pa.array([row == partition for row in rows])) for partition in partitions]
    named = [tuple((f"f{i}", value) for i, value in enumerate(partition)) for partition in partitions]
    files, fields = several(tmp_path, parts, partitions=named, spec=spec)
    files = replace(files, data=tuple(replace(file, lower={}, upper={}) for file in files.data))
    for count in (1, 2, 30):
        asked = whole.select(["tenant", "id", "at"]).take(chance.sample(range(600), count))
        keys = Keys(asked)
        found, looked_at = look_up(files, fields, keys, ["n"])
        assert sum(len(hits.positions) for hits in found) == count
        if name == "not of the key":
            assert len(looked_at) == len(files.data)
        else:
            assert len(looked_at) == len(found)
        may_hold = keys.candidates(fields, files.spec_of).may_be_below
        for file, partition in zip(files.data, partitions, strict=True):
            bounds = [None if value is None else stored_in_spec(value) for value in partition]
            about = [
                {"contains_null": bound is None, "lower_bound": bound, "upper_bound": bound}
                for bound in bounds
            ]
            manifest = {"partition_spec_id": 0, "partitions": about}
            assert may_hold(manifest) or file not in looked_at
            # Of several fields, each is compared alone.
            assert not may_hold(manifest) or file in looked_at or len(spec) > 1


@pytest.mark.parametrize("transform", ["year", "month"])
def test_days_that_have_no_partition_here(transform: str) -> None:
    """The library that computes partitions gives none to days so far away, and other writers do."""
    schema = pa.schema([with_id("day", pa.date32(), 1)])
    days = pa.array([100_000_000, 0, None], pa.int32()).cast(pa.date32())
    fields = FieldSchema(0, schema, True, {"day": 1}, {})
    keys = Keys(pa.table([days], schema=schema))
    candidates = keys.candidates(fields, lambda spec_id: (SpecField(1, transform),))
    bound = (273_790).to_bytes(4, "little")
    about = {"contains_null": False, "lower_bound": bound, "upper_bound": bound}
    assert candidates.may_be_below({"partition_spec_id": 0, "partitions": [about]})
    near = Keys(pa.table([days.slice(1)], schema=schema))
    others = near.candidates(fields, lambda spec_id: (SpecField(1, transform),))
    assert not others.may_be_below({"partition_spec_id": 0, "partitions": [about]})


def stored_in_spec(value: Any) -> bytes:
    """Return a partition's value as a list of manifests holds it."""
    return value.to_bytes(4, "little", signed=True) if isinstance(value, int) and value < 8 else stored(value)


def test_values_that_are_not_compared_leave_nothing_out() -> None:
    """Numbers with a NaN, bounds of another type, bounds that are missing."""
    numbers = Values(pa.array([1.5, float("nan")]))
    assert numbers.may_be_within(bytes(8), bytes(8))
    days = Values(pa.array([date(2020, 1, 1)]))
    assert days.may_be_within(bytes(8), bytes(8)), "eight bytes are no day"
    assert not days.may_be_within(bytes(4), bytes(4))
    assert days.may_be_within(None, bytes(4))
    widened = Values(pa.array([7], pa.int64()))
    assert widened.may_be_within((7).to_bytes(4, "little"), (7).to_bytes(4, "little"))
    assert not widened.may_be_within((8).to_bytes(4, "little"), (9).to_bytes(4, "little"))


def test_what_is_kept_of_manifests_is_bounded_by_bytes(tmp_path: Path) -> None:
    """A few manifests of many files weigh as much as many of few; the oldest are given up."""
    schema = pa.schema([with_id("n", pa.int64(), 1)])
    files, _ = several(tmp_path, [pa.table([range(3)], schema=schema)])
    kept = KeptManifests(limit=50_000)
    for number in range(100):
        kept.put((f"m{number}", 1, 0, None), files.data * 10)
        assert kept.bytes <= 50_000
    assert kept.get(("m99", 1, 0, None)) == files.data * 10
    assert kept.get(("m0", 1, 0, None)) is None
    kept.put(("large", 1, 0, None), files.data * 1000)
    assert kept.get(("large", 1, 0, None)) is None
    assert kept.get(("m99", 1, 0, None)) is not None


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
