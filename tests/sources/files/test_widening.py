"""One type for the columns of several files, wide enough for each of them."""

from __future__ import annotations

import pytest

from esker.project.types import Column, parse_type
from esker.sources.files.widening import NoCommonType, widen_columns


def widened(one: str, other: str) -> str:
    columns = widen_columns((Column("c", parse_type(one)),), (Column("C", parse_type(other)),))
    (column,) = columns
    assert column.name == "c"
    return str(column.type)


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("int", "int", "int"),
        ("int", "bigint", "bigint"),
        ("float", "double", "double"),
        ("decimal(5,2)", "decimal(10,0)", "decimal(12,2)"),
        ("int", "decimal(5,2)", "decimal(12,2)"),
        ("decimal(20,1)", "bigint", "decimal(20,1)"),
        ("struct<a: int>", "struct<A: bigint, b: string>", "struct<a:bigint,b:string>"),
        ("array<int>", "array<bigint>", "array<bigint>"),
        ("map<string,float>", "map<string,double>", "map<string,double>"),
    ],
)
def test_common_type_keeps_every_value(one: str, other: str, common: str) -> None:
    """In either order."""
    assert widened(one, other) == common
    if "struct" not in one:
        assert widened(other, one) == common


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        ("bigint", "double", "c"),
        ("string", "int", "c"),
        ("timestamp", "timestamp_ntz", "c"),
        ("decimal(38,0)", "decimal(38,10)", "c"),
        ("struct<a: struct<b: int>>", "struct<a: struct<b: date>>", "c.a.b"),
        ("array<int>", "array<string>", "c.element"),
    ],
)
def test_types_that_would_lose_values_have_none(one: str, other: str, path: str) -> None:
    """The path says where, at any depth."""
    with pytest.raises(NoCommonType) as caught:
        widened(one, other)
    assert caught.value.path == path


def test_columns_of_either_side_are_kept() -> None:
    """In the order in which they come."""
    one = (Column("a", parse_type("int")), Column("b", parse_type("int")))
    other = (Column("c", parse_type("int")), Column("A", parse_type("bigint")))
    assert [(c.name, str(c.type)) for c in widen_columns(one, other)] == [
        ("a", "bigint"),
        ("b", "int"),
        ("c", "int"),
    ]
