"""The row hash is one number in both lanes, tells contents apart, and outlives changes of the columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal as Number
from itertools import combinations, count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from esker.engine.compat import from_arrow
from esker.load.row_hash import arrow_hash, spark_hash
from esker.project.types import Array, Column, Decimal, Map, Plain, Struct, Type
from tests.folder import Folder

pytestmark = pytest.mark.spark

_ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "string": st.text(max_size=40),
    "binary": st.binary(max_size=40),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
    "timestamp_ntz": st.datetimes(),
}
_NO_KEYS = ("float", "double")  # Spark takes -0.0 and 0.0 for one key


def arrow_type(kind: Type) -> pa.DataType:
    match kind:
        case Plain(name):
            return _ARROW[name]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element):
            return pa.list_(pa.field("element", arrow_type(element)))
        case Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct(fields):
            return pa.struct([pa.field(field.name, arrow_type(field.type)) for field in fields])


def values(kind: Type) -> st.SearchStrategy[Any]:
    """Values of a type; any of them may be null, also inside."""
    match kind:
        case Plain(name):
            found = _VALUES[name]
        case Decimal(precision, scale):
            largest = 10**precision - 1
            found = st.integers(-largest, largest).map(lambda number: Number(f"{number}e-{scale}"))
        case Array(element):
            found = st.lists(values(element), max_size=4)
        case Map(key, value):
            keys = values(key).filter(lambda found: found is not None)
            found = st.dictionaries(keys, values(value), max_size=4).map(lambda pairs: list(pairs.items()))
        case Struct(fields):
            found = st.fixed_dictionaries({field.name: values(field.type) for field in fields})
    return st.none() | found


def types() -> st.SearchStrategy[Type]:
    """All types, nested a few levels deep."""
    scales = st.tuples(st.integers(1, 38), st.integers(0, 38)).filter(lambda pair: pair[1] <= pair[0])
    decimals = scales.map(lambda pair: Decimal(*pair))
    plain: st.SearchStrategy[Type] = st.sampled_from(sorted(_ARROW)).map(Plain)
    keys = st.sampled_from(sorted(set(_ARROW) - set(_NO_KEYS))).map(Plain) | decimals
    return st.recursive(
        plain | decimals,
        lambda inner: (
            st.builds(Array, inner)
            | st.builds(Map, keys, inner)
            | st.lists(inner, min_size=1, max_size=3).map(
                lambda kinds: Struct(tuple(Column(f"f{n}", kind) for n, kind in enumerate(kinds)))
            )
        ),
        max_leaves=5,
    )


def numbered(columns: tuple[Column, ...]) -> dict[str, int]:
    """Give every column, and every field inside one, an id."""
    numbers = count(1)

    def visit(path: str, kind: Type) -> Iterator[tuple[str, int]]:
        yield path, next(numbers)
        match kind:
            case Array(element):
                yield from visit(f"{path}.element", element)
            case Map(key, value):
                yield from visit(f"{path}.key", key)
                yield from visit(f"{path}.value", value)
            case Struct(fields):
                for field in fields:
                    yield from visit(f"{path}.{field.name}", field.type)

    return {path: number for column in columns for path, number in visit(column.name, column.type)}


def table_of(columns: tuple[Column, ...], rows: list[dict[str, Any]]) -> pa.Table:
    arrays = {c.name: pa.array([row[c.name] for row in rows], arrow_type(c.type)) for c in columns}
    return pa.table(arrays)


def in_arrow(columns: tuple[Column, ...], rows: list[dict[str, Any]], ids: Mapping[str, int]) -> list[int]:
    found: list[int] = arrow_hash(table_of(columns, rows), ids).to_pylist()
    return found


def in_spark(
    spark: SparkSession, columns: tuple[Column, ...], rows: list[dict[str, Any]], ids: Mapping[str, int]
) -> list[int]:
    frame = from_arrow(spark, table_of(columns, rows))
    return [row.hash for row in frame.select(spark_hash(columns, ids).alias("hash")).collect()]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory, spark_running: None) -> SparkSession:
    return Folder(tmp_path_factory.mktemp("hash")).open().engine.spark


PLAIN = tuple(Column(name, Plain(name)) for name in _ARROW) + tuple(
    Column(f"decimal_{p}_{s}", Decimal(p, s)) for p, s in ((5, 0), (9, 9), (18, 3), (38, 0), (38, 38))
)


def drawn(strategy: st.SearchStrategy[Any], number: int) -> list[Any]:
    """Return many values of a strategy: Spark compares them all in one job, which costs more than they do."""
    found: list[Any] = []

    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    assert len(found) >= number / 2
    return found


def rows_of(columns: tuple[Column, ...], number: int) -> list[dict[str, Any]]:
    return drawn(st.fixed_dictionaries({column.name: values(column.type) for column in columns}), number)


def lanes_agree(spark: SparkSession, columns: tuple[Column, ...], number: int) -> None:
    rows, ids = rows_of(columns, number), numbered(columns)
    for row, one, other in zip(
        rows, in_arrow(columns, rows, ids), in_spark(spark, columns, rows, ids), strict=True
    ):
        assert one == other, f"{row} of {columns}"


def test_lanes_agree_on_plain_types(spark: SparkSession) -> None:
    """Arrow and Spark give one number for every value of every type without parts."""
    lanes_agree(spark, PLAIN, 150)


def test_lanes_agree_on_nested_types(spark: SparkSession) -> None:
    """… and for lists, maps and structs inside each other, with nulls at every level."""
    for kinds in drawn(st.lists(types(), min_size=3, max_size=3), 8):
        lanes_agree(spark, tuple(Column(f"c{n}", kind) for n, kind in enumerate(kinds)), 40)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_lanes_agree_at_length(spark: SparkSession) -> None:
    """The same with many more types and rows."""
    lanes_agree(spark, PLAIN, 3000)
    for kinds in drawn(st.lists(types(), min_size=3, max_size=6), 150):
        lanes_agree(spark, tuple(Column(f"c{n}", kind) for n, kind in enumerate(kinds)), 100)


INT, TEXT = Plain("int"), Plain("string")
PAIR = Struct((Column("a", TEXT), Column("b", TEXT)))

APART: dict[str, tuple[Type, list[Any]]] = {
    "numbers": (INT, [None, 0, 1, -1, 256]),
    "texts": (TEXT, [None, "", " ", "a", "A", "\0", "ä", "a\u0308"]),
    "bytes": (Plain("binary"), [None, b"", b"\0", b"\0\0"]),
    "booleans": (Plain("boolean"), [None, False, True]),
    "doubles": (Plain("double"), [None, 0.0, 5e-324, 1.0, float("inf"), float("-inf"), float("nan")]),
    "decimals": (
        Decimal(38, 2),
        [
            None,
            Number(0),
            Number("9" * 36),
            Number("9" * 35 + "8"),
            Number("0.01"),
            Number("1"),
            Number("-0.01"),
        ],
    ),
    "moments": (
        Plain("timestamp"),
        [None, datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 0, 1, UTC)],
    ),
    "lists": (
        Array(INT),
        [None, [], [None], [None, None], [0], [0, None], [None, 0], [0, 0], [1, 0], [0, 1]],
    ),
    "lists of texts": (
        Array(TEXT),
        [["abc"], ["ab", "c"], ["a", "bc"], ["a", "b", "c"], ["", "abc"], ["abc", ""]],
    ),
    "lists of lists": (
        Array(Array(INT)),
        [None, [], [None], [[]], [[], []], [[None]], [[1, 2]], [[1], [2]], [[1, 2], []], [[], [1, 2]]],
    ),
    "structs": (
        PAIR,
        [
            None,
            {"a": None, "b": None},
            {"a": "x", "b": None},
            {"a": None, "b": "x"},
            {"a": "x", "b": "y"},
            {"a": "y", "b": "x"},
            {"a": "xy", "b": ""},
            {"a": "", "b": "xy"},
        ],
    ),
    "lists of structs": (
        Array(PAIR),
        [
            [],
            [None],
            [{"a": None, "b": None}],
            [{"a": "x", "b": None}, {"a": None, "b": "y"}],
            [{"a": "x", "b": "y"}],
            [{"a": "x", "b": "y"}, None],
        ],
    ),
    "maps": (
        Map(TEXT, INT),
        [
            None,
            [],
            [("a", None)],
            [("a", 0)],
            [("a", 1)],
            [("a", 0), ("b", 1)],
            [("a", 1), ("b", 0)],
            [("", 0)],
        ],
    ),
    "maps of lists": (
        Map(TEXT, Array(INT)),
        [[("a", None)], [("a", [])], [("a", [None])], [("a", [1]), ("b", [2])], [("a", [1, 2]), ("b", [])]],
    ),
}


@pytest.mark.parametrize("name", APART)
def test_contents_are_told_apart(spark: SparkSession, name: str) -> None:
    """Null, empty, and elements that stand elsewhere are different contents."""
    kind, contents = APART[name]
    columns = (Column("c", kind),)
    rows = [{"c": content} for content in contents]
    ids = numbered(columns)
    hashes = in_arrow(columns, rows, ids)
    for (one, first), (other, second) in combinations(zip(contents, hashes, strict=True), 2):
        assert first != second, f"{one!r} and {other!r} have one hash"
    assert in_spark(spark, columns, rows, ids) == hashes


def test_values_that_change_columns_are_told_apart() -> None:
    """The same values in other columns are another content; a map has no order."""
    columns = (Column("a", INT), Column("b", INT))
    rows: list[dict[str, Any]] = [{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 2}]
    rows += [{"a": None, "b": 1}, {"a": 1, "b": None}, {"a": None, "b": None}]
    assert len(set(in_arrow(columns, rows, numbered(columns)))) == len(rows)
    maps = (Column("c", Map(TEXT, INT)),)
    turned = [{"c": [("a", 1), ("b", 2)]}, {"c": [("b", 2), ("a", 1)]}]
    assert len(set(in_arrow(maps, turned, numbered(maps)))) == 1


BEFORE = (
    Column("n", INT),
    Column("x", Plain("float")),
    Column("d", Decimal(9, 2)),
    Column("s", Struct((Column("a", INT), Column("b", TEXT)))),
    Column("l", Array(Struct((Column("d", Decimal(9, 2)), Column("x", Plain("float")))))),
    Column("m", Map(INT, Plain("float"))),
)
IDS = numbered(BEFORE)


def _widened(kind: Type) -> Type:
    match kind:
        case Plain("int"):
            return Plain("bigint")
        case Plain("float"):
            return Plain("double")
        case Decimal(_, scale):
            return Decimal(30, scale)
        case Array(element):
            return Array(_widened(element))
        case Map(key, value):
            return Map(_widened(key), _widened(value))
        case Struct(fields):
            return Struct(tuple(Column(field.name, _widened(field.type)) for field in fields))
    return kind


def _added(rows: list[dict[str, Any]]) -> tuple[tuple[Column, ...], list[dict[str, Any]], dict[str, int]]:
    pair = Struct((Column("a", INT), Column("new", TEXT), Column("b", TEXT)))
    columns = (
        *(Column("s", pair) if column.name == "s" else column for column in BEFORE),
        Column("later", Array(TEXT)),
    )
    wider = [
        row | {"later": None, "s": None if row["s"] is None else row["s"] | {"new": None}} for row in rows
    ]
    return columns, wider, IDS | {"s.new": 900, "later": 901, "later.element": 902}


def _reordered(rows: list[dict[str, Any]]) -> tuple[tuple[Column, ...], list[dict[str, Any]], dict[str, int]]:
    turned = Struct((Column("b", TEXT), Column("a", INT)))
    columns = tuple(Column("s", turned) if column.name == "s" else column for column in reversed(BEFORE))
    return columns, rows, IDS


def _renamed(rows: list[dict[str, Any]]) -> tuple[tuple[Column, ...], list[dict[str, Any]], dict[str, int]]:
    pair = Struct((Column("z", INT), Column("y", TEXT)))
    kinds = {column.name: pair if column.name == "s" else column.type for column in BEFORE}
    columns = tuple(Column(f"new_{name}", kind) for name, kind in kinds.items())
    names = {"s.a": "s.z", "s.b": "s.y"}
    ids = {f"new_{names.get(path, path)}": number for path, number in IDS.items()}
    others = [
        {f"new_{name}": value for name, value in row.items()}
        | {"new_s": None if row["s"] is None else {"z": row["s"]["a"], "y": row["s"]["b"]}}
        for row in rows
    ]
    return columns, others, ids


def _wider(rows: list[dict[str, Any]]) -> tuple[tuple[Column, ...], list[dict[str, Any]], dict[str, int]]:
    return tuple(Column(column.name, _widened(column.type)) for column in BEFORE), rows, IDS


@pytest.fixture(scope="module")
def contents() -> list[dict[str, Any]]:
    return rows_of(BEFORE, 80)


@pytest.mark.parametrize("change", [_added, _reordered, _renamed, _wider], ids=lambda act: act.__name__[1:])
def test_changed_columns_change_no_hash(
    spark: SparkSession, contents: list[dict[str, Any]], change: Any
) -> None:
    """Adding, reordering, renaming and widening columns, also inside structs, leaves every hash."""
    columns, others, ids = change(contents)
    before = in_arrow(BEFORE, contents, IDS)
    assert len(set(before)) > len(contents) / 2
    assert in_arrow(columns, others, ids) == before
    assert in_spark(spark, columns, others, ids) == before
