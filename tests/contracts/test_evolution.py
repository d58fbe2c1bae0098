"""Comparing the columns that a source sends with those that a table has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.contracts.evolution import compare, find, is_widening, shared, with_changes, with_required
from esker.project.types import Array, Column, Map, Plain, Struct, Type, parse_type

# Few names and types, so that two sets of columns often meet.
NAMES = st.sampled_from(["a", "b", "C", "d"])


def columns_of(kinds: st.SearchStrategy[Type]) -> st.SearchStrategy[tuple[Column, ...]]:
    column = st.builds(Column, NAMES, kinds, st.booleans())
    return st.lists(column, min_size=1, max_size=4, unique_by=lambda c: c.name.lower()).map(tuple)


TYPES = st.recursive(
    st.sampled_from(["int", "bigint", "string", "date"]).map(Plain),
    lambda inner: st.one_of(
        st.builds(Array, inner),
        st.builds(Map, st.just(Plain("string")), inner),
        st.builds(Struct, columns_of(inner)),
    ),
    max_leaves=6,
)
COLUMNS = columns_of(TYPES)


@given(COLUMNS, COLUMNS, st.booleans())
def test_after_the_additions_nothing_is_missing(
    table: tuple[Column, ...], sent: tuple[Column, ...], is_text: bool
) -> None:
    """Applying what `compare` found leaves nothing to add, and settles no conflict by accident."""
    differences = compare(table, sent, is_text=is_text)
    after = compare(with_changes(table, differences), sent, is_text=is_text)
    assert after.added == ()
    assert after.conflicts == differences.conflicts


@given(COLUMNS, COLUMNS)
def test_what_the_table_has_stays(table: tuple[Column, ...], sent: tuple[Column, ...]) -> None:
    """Additions move, rename and retype nothing: columns keep their order, names and demands."""
    extended = with_changes(table, compare(table, sent, is_text=False))
    for before, after in zip(table, extended, strict=False):
        assert (before.name, before.required, before.doc) == (after.name, after.required, after.doc)
    assert compare(extended, table, is_text=False) == compare(table, table, is_text=False)


@given(COLUMNS)
def test_equal_columns_do_not_differ(columns: tuple[Column, ...]) -> None:
    """A source that sends what the table has needs no change."""
    differences = compare(columns, columns, is_text=False)
    assert (differences.added, differences.conflicts) == ((), ())


@given(COLUMNS)
def test_a_new_column_is_never_required(sent: tuple[Column, ...]) -> None:
    """Rows that are in the table already have no value for it."""
    added = compare((), sent, is_text=False).added
    assert [(path, column.name, column.required) for path, column in added] == [
        ((), column.name, False) for column in sent
    ]


@given(COLUMNS)
def test_upper_and_lower_case_are_one(columns: tuple[Column, ...]) -> None:
    """Spark takes `ID` and `id` as one column, so nothing is added for it."""
    swapped = tuple(Column(column.name.swapcase(), column.type) for column in columns)
    assert compare(columns, swapped, is_text=False).added == ()
    assert find(columns, columns[0].name.swapcase()) == columns[0]


@pytest.mark.parametrize(
    ("sent", "table"),
    [
        ("int", "bigint"),
        ("float", "double"),
        ("int", "string"),
        ("date", "string"),
        ("decimal(10,2)", "decimal(12,2)"),
        ("decimal(10,2)", "decimal(12,4)"),
        ("decimal(10,2)", "string"),
        ("int", "decimal(10,0)"),
        ("bigint", "decimal(21,2)"),
    ],
)
def test_a_wider_type_takes_every_value(sent: str, table: str) -> None:
    """Values that fit without loss are no conflict; the other way round they are one."""
    assert is_widening(parse_type(sent), parse_type(table))
    assert not is_widening(parse_type(table), parse_type(sent))


@pytest.mark.parametrize(
    ("sent", "table"),
    [
        ("string", "int"),
        ("binary", "string"),
        ("double", "bigint"),
        ("decimal(12,4)", "decimal(12,2)"),
        ("decimal(12,2)", "decimal(12,4)"),
        ("bigint", "decimal(18,0)"),
        ("timestamp", "date"),
        ("timestamp", "timestamp_ntz"),
        ("array<int>", "int"),
    ],
)
def test_a_type_that_would_lose_something_is_a_conflict(sent: str, table: str) -> None:
    """The message names the column and both types."""
    found = compare((Column("x", parse_type(table)),), (Column("X", parse_type(sent)),), is_text=False)
    assert found.conflicts == (f'column "x" is {table} in the table and {sent} in the source',)


@pytest.mark.parametrize(
    ("table", "sent"),
    [("int", "bigint"), ("float", "double"), ("decimal(10,2)", "decimal(12,2)")],
)
def test_a_wider_type_in_the_source_widens_the_column(table: str, sent: str) -> None:
    """These are what Iceberg can do without rewriting a file, also deep inside."""
    nested = "struct<a:array<{}>>"
    have = (Column("x", parse_type(table)), Column("s", parse_type(nested.format(table))))
    get = (Column("x", parse_type(sent)), Column("s", parse_type(nested.format(sent))))
    found = compare(have, get, is_text=False)
    assert found.widened == ((("x",), parse_type(sent)), (("s", "a", "element"), parse_type(sent)))
    assert (found.added, found.conflicts) == ((), ())
    assert with_changes(have, found) == get


def test_text_fits_plain_types_but_no_nested_ones() -> None:
    """Whether each text can be read as the type is checked row by row; a struct is never read from text."""
    table = (Column("n", parse_type("int")), Column("s", parse_type("struct<a:int>")))
    sent = (Column("n", Plain("string")), Column("s", Plain("string")))
    assert compare(table, sent, is_text=True).conflicts == (
        'column "s" is struct<a:int> in the table and string in the source',
    )


def test_fields_are_added_deep_inside() -> None:
    """A new field of a struct inside an array inside a map is found and added where it belongs."""
    table = (Column("m", parse_type("map<string,array<struct<a:int>>>"), required=True, doc="kept"),)
    sent = (Column("m", parse_type("map<string,array<struct<a:int,b:date>>>")),)
    differences = compare(table, sent, is_text=False)
    assert differences.added == ((("m", "value", "element"), Column("b", Plain("date"))),)
    assert with_changes(table, differences) == (
        Column("m", parse_type("map<string,array<struct<a:int,b:date>>>"), required=True, doc="kept"),
    )


def test_the_key_of_a_map_never_changes() -> None:
    """Iceberg does not let a map's key gain fields, so other keys are a conflict."""
    table = (Column("m", parse_type("map<struct<a:int>,int>")),)
    sent = (Column("m", parse_type("map<struct<a:int,b:int>,int>")),)
    differences = compare(table, sent, is_text=False)
    assert (differences.added, len(differences.conflicts)) == ((), 1)


def entries(*kinds: str) -> tuple[Column, ...]:
    """Return a column that JSON shows as a struct, where the table has a map."""
    fields = (Column(f"k{index}", parse_type(kind)) for index, kind in enumerate(kinds))
    return (Column("m", Struct(tuple(fields))),)


TABLE_OF_ENTRIES = (Column("m", parse_type("map<string,struct<a:int>>")),)


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        (("struct<z:bigint>", "struct<a:bigint>", "struct<z:bigint>"), "bigint"),
        (("struct<z:int>", "struct<Z:bigint>"), "bigint"),
        (("struct<z:bigint>", "struct<z:int>"), "bigint"),
        (("struct<z:struct<b:int>>", "struct<z:struct<b:bigint,c:date>>"), "struct<b:bigint,c:date>"),
        (("struct<z:array<float>>", "struct<z:array<double>>"), "array<double>"),
    ],
)
def test_entries_of_a_map_add_a_field_once(kinds: tuple[str, ...], kind: str) -> None:
    """Each entry looks like a field of its own; what they add is one field, which takes the values of all."""
    found = compare(TABLE_OF_ENTRIES, entries(*kinds), is_text=True)
    assert found.added == ((("m", "value"), Column("z", parse_type(kind))),)
    assert found.conflicts == ()


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (
            ("struct<z:bigint>", "struct<z:string>"),
            'column "m.value.z" is both bigint and string in the source',
        ),
        (
            ("struct<z:struct<b:int>>", "struct<z:struct<b:date>>", "struct<z:struct<b:int>>"),
            'column "m.value.z.b" is both int and date in the source',
        ),
    ],
)
def test_entries_of_a_map_that_do_not_agree(kinds: tuple[str, ...], told: str) -> None:
    """No type takes the values of all, so that nothing is added."""
    found = compare(TABLE_OF_ENTRIES, entries(*kinds), is_text=True)
    assert (found.added, found.conflicts) == ((), (told,))


def test_names_of_entries_in_another_case() -> None:
    """Where values are found by the exact name, those of the other would be lost."""
    sent = entries("struct<z:int>", "struct<Z:int>")
    found = compare(TABLE_OF_ENTRIES, sent, is_text=True, is_exact=True)
    assert found.conflicts == ('column "m.value.z" is written "Z" in the source',)


@given(COLUMNS)
def test_requirements_are_changed_at_every_depth(columns: tuple[Column, ...]) -> None:
    paths = [path for path, _, _ in shared(columns, columns)]
    for required in (True, False):
        changed = with_required(columns, paths, required=required)
        assert all(column.required is required for _, column, _ in shared(changed, changed))
        assert [path for path, _, _ in shared(changed, columns)] == paths


@pytest.mark.parametrize(
    ("table", "sent", "is_fitting"),
    [
        ("array<string>", "string", True),
        ("array<struct<x: int>>", "struct<x: string>", True),
        ("struct<_VALUE: string, _k: string>", "string", True),
        ("array<struct<_VALUE: string, _k: string>>", "string", True),
        ("string", "array<string>", False),
        ("struct<x: string>", "string", False),
        ("string", "struct<x: string>", False),
    ],
)
def test_one_of_xml_may_be_a_list_of_one(table: str, sent: str, is_fitting: bool) -> None:
    """Whoever looks at XML without knowing the table cannot tell one value from a list of one."""
    columns = (Column("a", parse_type(table)),), (Column("a", parse_type(sent)),)
    assert bool(compare(*columns, is_text=True, is_loose=True).conflicts) is not is_fitting
    assert compare(*columns, is_text=True).conflicts
