"""Column types: read, written and handed to Spark without loss."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.project.types import (
    Array,
    Column,
    Decimal,
    Map,
    Plain,
    Struct,
    Type,
    TypeSyntaxError,
    columns_as_json,
    columns_from_json,
    ddl,
    parse_type,
    quoted,
)

PLAIN = st.sampled_from(
    ["boolean", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz"]
).map(Plain)
DECIMALS = st.integers(1, 38).flatmap(lambda p: st.builds(Decimal, st.just(p), st.integers(0, p)))
NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)
DOCS = st.none() | st.text(min_size=1, max_size=12)


def columns_of(kinds: st.SearchStrategy[Type], *, bare: bool) -> st.SearchStrategy[tuple[Column, ...]]:
    """Columns with distinct names; bare ones have nothing that a type's text does not show."""
    column = st.builds(Column, NAMES, kinds) if bare else st.builds(Column, NAMES, kinds, st.booleans(), DOCS)
    return st.lists(column, min_size=1, max_size=4, unique_by=lambda c: c.name.lower()).map(tuple)


def types_of(*, bare: bool) -> st.SearchStrategy[Type]:
    return st.recursive(
        PLAIN | DECIMALS,
        lambda inner: st.one_of(
            st.builds(Array, inner),
            st.builds(Map, PLAIN, inner),
            st.builds(Struct, columns_of(inner, bare=bare)),
        ),
        max_leaves=8,
    )


@given(types_of(bare=True))
def test_a_type_is_read_back_from_its_text(kind: Type) -> None:
    """What messages show, and what stands in CREATE TABLE, can be written into the project file."""
    assert parse_type(str(kind)) == kind
    assert parse_type(ddl(kind)) == kind


@given(columns_of(types_of(bare=False), bare=False))
def test_columns_survive_sparks_json(columns: tuple[Column, ...]) -> None:
    """Columns go to Spark and come back as they were: names, types, required, doc."""
    assert columns_from_json(json.loads(json.dumps(columns_as_json(columns)))) == columns


@given(NAMES)
def test_a_quoted_name_cannot_end_early(name: str) -> None:
    """Whatever a name holds, it stays one identifier in SQL."""
    inner = quoted(name)[1:-1]
    assert "`" not in inner.replace("``", "")
    assert inner.replace("``", "`") == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INTEGER", Plain("int")),
        ("long", Plain("bigint")),
        ("varchar(20)", Plain("string")),
        ("text", Plain("string")),
        ("timestamptz", Plain("timestamp")),
        ("decimal", Decimal(10, 0)),
        ("numeric(5)", Decimal(5, 0)),
        ("decimal( 12 , 2 )", Decimal(12, 2)),
        ("list<int>", Array(Plain("int"))),
        (
            "struct<a: int, `b c`: array<string>>",
            Struct((Column("a", Plain("int")), Column("b c", Array(Plain("string"))))),
        ),
        ("map<string, map<string,int>>", Map(Plain("string"), Map(Plain("string"), Plain("int")))),
        ("struct<état: int>", Struct((Column("état", Plain("int")),))),
    ],
)
def test_usual_spellings(text: str, expected: Type) -> None:
    """Names from other systems, any spacing and any case are understood."""
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the type ends too early"),
        ("integr", 'unknown type "integr"; known are boolean'),
        ("array", "the type ends too early"),
        ("array<int", 'expected ">", the type ends too early'),
        ("array<int>>", 'unexpected ">"'),
        ("map<int>", 'expected ",", found ">"'),
        ("struct<>", 'expected a field name, found ">"'),
        ("struct<,: int>", 'expected a field name, found ","'),
        ("struct<``: int>", "expected a field name"),
        ("struct<a int>", 'expected ":", found "int"'),
        ("struct<a: int, A: int>", 'field "A" stands there twice'),
        ("decimal(39,2)", "at most 38 digits"),
        ("decimal(5,6)", "at most 38 digits"),
        ("decimal(a)", 'expected a number, found "a"'),
        ("int!", 'unexpected "!"'),
        ("int string", 'unexpected "string"'),
    ],
)
def test_a_type_that_cannot_be_read_is_explained(text: str, message: str) -> None:
    """The message says what was expected, where."""
    with pytest.raises(TypeSyntaxError, match=re.escape(message)):
        parse_type(text)


def test_comments_are_safe_in_sql() -> None:
    """Quotes and backslashes in a doc stay inside the string literal."""
    column = Column("id", Plain("int"), required=True, doc="it's a \\ path")
    assert column.ddl() == r"`id` int NOT NULL COMMENT 'it\'s a \\ path'"
