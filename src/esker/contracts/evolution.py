"""Compare the columns that a source sends with those that a table has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from esker.project.types import Array, Column, Decimal, Map, Plain, Struct, Type

Path = tuple[str, ...]
"""The names that lead to a column or a field: `element` into a list, `value` into a map."""
Added = tuple[tuple[Path, Column], ...]
"""Columns, each with the path of the struct that it belongs to."""
TEXT_FIELD = "_VALUE"
"""Field for the text of an element that has attributes too, as Spark calls it."""
_WIDER = {"int": ("bigint",), "float": ("double",)}


@dataclass(frozen=True)
class Differences:
    """What must be added to the table or widened in it, and what cannot be loaded into it."""

    added: Added
    widened: tuple[tuple[Path, Type], ...]
    conflicts: tuple[str, ...]


@dataclass
class _Found:
    """Differences as they are found."""

    added: list[tuple[Path, Column]]
    widened: list[tuple[Path, Type]]
    conflicts: list[str]


@dataclass(frozen=True)
class _Rules:
    is_text: bool
    is_exact: bool
    is_loose: bool


def compare(
    table: tuple[Column, ...],
    sent: tuple[Column, ...],
    *,
    is_text: bool,
    is_exact: bool = False,
    is_loose: bool = False,
) -> Differences:
    """Return the differences between a table's columns and a source's.

    Text fits any plain type here; whether each value does is checked row by row. With `is_exact` the
    source's values are found by the exact name, so that another case would find nothing. With `is_loose`
    one value fits a list, and a text fits a struct that has a field for it.
    """
    found = _Found([], [], [])
    _compare(table, sent, (), found, _Rules(is_text, is_exact, is_loose))
    return Differences(tuple(found.added), tuple(found.widened), tuple(found.conflicts))


def with_changes(table: tuple[Column, ...], differences: Differences) -> tuple[Column, ...]:
    """Return a table's columns as they are after the additions and widenings."""
    columns = table
    for path, column in differences.added:
        columns = _insert(columns, path, column)
    for path, kind in differences.widened:
        columns = _with_type(columns, path, kind)
    return columns


def shared(table: tuple[Column, ...], other: tuple[Column, ...]) -> Iterator[tuple[Path, Column, Column]]:
    """Yield what two sets of columns both have: its path, the one, and the other.

    Fields inside come too, and elements of lists and values of maps as if they were fields of these names;
    but nothing in keys of maps: Iceberg lets no key change.
    """
    return _shared(table, other, ())


def with_required(
    columns: tuple[Column, ...], paths: Iterable[Path], *, required: bool
) -> tuple[Column, ...]:
    """Return columns of which some, or what is inside, are required or no longer so."""
    for path in paths:
        columns = _demanded(columns, path, required)
    return columns


def is_widening(sent: Type, table: Type) -> bool:
    """Tell whether every value of one plain type fits another without loss."""
    match sent, table:
        case Plain(name), Plain(wider):
            return wider in (name, *_WIDER.get(name, ())) or (wider == "string" and name != "binary")
        case Decimal(precision, scale), Decimal(wide, deep):
            return deep >= scale and wide - deep >= precision - scale
        case Plain("int" | "bigint" as name), Decimal(wide, deep):
            return wide - deep >= (10 if name == "int" else 19)
        case Decimal(), Plain("string"):
            return True
    return False


def find(columns: tuple[Column, ...], name: str) -> Column | None:
    """Return the column of a name; upper and lower case are one."""
    return next((column for column in columns if column.name.lower() == name.lower()), None)


def _shared(
    table: tuple[Column, ...], other: tuple[Column, ...], above: Path
) -> Iterator[tuple[Path, Column, Column]]:
    for column in table:
        match = find(other, column.name)
        if match is not None:
            path = (*above, column.name)
            yield path, column, match
            yield from _shared_inside(column.type, match.type, path)


def _shared_inside(kind: Type, other: Type, path: Path) -> Iterator[tuple[Path, Column, Column]]:
    match kind, other:
        case Struct(fields), Struct(others):
            yield from _shared(fields, others, path)
        case Array(one, required), Array(two, demanded):
            pair = Column("element", one, required), Column("element", two, demanded)
            yield from _shared(pair[:1], pair[1:], path)
        case Map(_, one, required), Map(_, two, demanded):
            pair = Column("value", one, required), Column("value", two, demanded)
            yield from _shared(pair[:1], pair[1:], path)


def _compare(
    table: tuple[Column, ...],
    sent: tuple[Column, ...],
    path: Path,
    found: _Found,
    rules: _Rules,
) -> None:
    for column in sent:
        present = find(table, column.name)
        if present is None:
            # A column that older rows lack cannot be required.
            found.added.append((path, Column(column.name, column.type, doc=column.doc)))
        else:
            name = (*path, present.name)
            if rules.is_exact and column.name != present.name:
                found.conflicts.append(f'column "{".".join(name)}" is written "{column.name}" in the source')
            _compare_types(present.type, column.type, name, found, rules)


def _compare_types(
    table: Type,
    sent: Type,
    path: Path,
    found: _Found,
    rules: _Rules,
) -> None:
    match table, sent:
        case Struct(have), Struct(get):
            _compare(have, get, path, found, rules)
        case Array(have_element), Array(get_element):
            _compare_types(have_element, get_element, (*path, "element"), found, rules)
        case Array(have_element), _ if rules.is_loose:
            _compare_types(have_element, sent, (*path, "element"), found, rules)
        case Struct(have), Plain() if rules.is_loose and find(have, TEXT_FIELD) is not None:
            pass
        case Map(have_key, have_value), Map(get_key, get_value):
            # Iceberg lets no map key gain fields.
            of_key = _Found([], [], found.conflicts)
            _compare_types(have_key, get_key, (*path, "key"), of_key, rules)
            if of_key.added or of_key.widened:
                found.conflicts.append(_conflict((*path, "key"), have_key, get_key))
            _compare_types(have_value, get_value, (*path, "value"), found, rules)
        case Map(Plain("string"), have_value), Struct(entries) if rules.is_text:
            # Whoever looks at JSON without knowing the table takes a map for a struct.
            of_entries = _Found([], [], [])
            for entry in entries:
                _compare_types(have_value, entry.type, (*path, "value"), of_entries, rules)
            _merge_entries(of_entries, rules)
            found.added += of_entries.added
            found.widened += dict.fromkeys(of_entries.widened)
            found.conflicts += dict.fromkeys(of_entries.conflicts)
        case Plain(stored=have_stored), Plain(stored=str(stored)) if have_stored != stored:
            found.conflicts.append(_conflict(path, table, sent))
        case Plain() | Decimal(), Plain() | Decimal() if rules.is_text or is_widening(sent, table):
            pass
        case Plain() | Decimal(), Plain() | Decimal() if _may_become(table, sent):
            found.widened.append((path, sent))
        case _:
            found.conflicts.append(_conflict(path, table, sent))


def _merge_entries(found: _Found, rules: _Rules) -> None:
    """Let each field that several entries of a map add be added once, with a type that takes them all."""
    merged: dict[tuple[Path, str], Column | None] = {}
    for path, column in found.added:
        place = (path, column.name.lower())
        before = merged.setdefault(place, column)
        if before is None or before == column:
            continue
        here = (*path, before.name)
        if rules.is_exact and before.name != column.name:
            found.conflicts.append(f'column "{".".join(here)}" is written "{column.name}" in the source')
            merged[place] = None
            continue
        kind = _merged(before.type, column.type, here, found.conflicts)
        merged[place] = None if kind is None else replace(before, type=kind)
    found.added = [(path, column) for (path, _), column in merged.items() if column is not None]


def _merged(one: Type, other: Type, path: Path, conflicts: list[str]) -> Type | None:
    """Return a type that takes what two entries of a map have; None, and a conflict, where none does."""
    match one, other:
        case Struct(fields), Struct(more):
            return _merged_fields(fields, more, path, conflicts)
        case Array(first, one_demands), Array(second, both):
            element = _merged(first, second, (*path, "element"), conflicts)
            return None if element is None else Array(element, one_demands and both)
        case Map(key, first, one_demands), Map(same, second, both) if key == same:
            value = _merged(first, second, (*path, "value"), conflicts)
            return None if value is None else Map(key, value, one_demands and both)
    if one == other or _may_become(other, one):
        return one
    if _may_become(one, other):
        return other
    conflicts.append(f'column "{".".join(path)}" is both {one} and {other} in the source')
    return None


def _merged_fields(
    fields: tuple[Column, ...], more: tuple[Column, ...], path: Path, conflicts: list[str]
) -> Struct | None:
    merged: list[Column] = []
    for field in fields:
        match = find(more, field.name)
        if match is None:
            merged.append(replace(field, required=False))
            continue
        kind = _merged(field.type, match.type, (*path, field.name), conflicts)
        if kind is None:
            return None
        merged.append(replace(field, type=kind, required=field.required and match.required))
    new = (replace(field, required=False) for field in more if find(fields, field.name) is None)
    return Struct((*merged, *new))


def _may_become(table: Type, wider: Type) -> bool:
    """Tell whether Iceberg lets a column of one type become another without rewriting files."""
    match table, wider:
        case Plain(name), Plain(other):
            return other in _WIDER.get(name, ())
        case Decimal(precision, scale), Decimal(more, same):
            return scale == same and more > precision
    return False


def _conflict(path: Path, table: Type, sent: Type) -> str:
    return f'column "{".".join(path)}" is {table} in the table and {sent} in the source'


def _insert(columns: tuple[Column, ...], path: Path, column: Column) -> tuple[Column, ...]:
    """Return columns with one more in the struct at a path (`()` for the columns themselves)."""
    if not path:
        return (*columns, column)
    first, *rest = path
    return tuple(
        replace(c, type=_insert_inside(c.type, tuple(rest), column)) if c.name.lower() == first.lower() else c
        for c in columns
    )


def _insert_inside(kind: Type, path: Path, column: Column) -> Type:
    match kind:
        case Struct(fields):
            return Struct(_insert(fields, path, column))
        case Array(element):
            return replace(kind, element=_insert_inside(element, path[1:], column))
        case Map(_, value):
            return replace(kind, value=_insert_inside(value, path[1:], column))
    raise TypeError(f"{kind} has no fields")


def _with_type(columns: tuple[Column, ...], path: Path, kind: Type) -> tuple[Column, ...]:
    first, *rest = path
    return tuple(
        replace(c, type=_type_within(c.type, tuple(rest), kind)) if c.name.lower() == first.lower() else c
        for c in columns
    )


def _type_within(present: Type, path: Path, kind: Type) -> Type:
    if not path:
        return kind
    match present:
        case Struct(fields):
            return Struct(_with_type(fields, path, kind))
        case Array(element):
            return replace(present, element=_type_within(element, path[1:], kind))
        case Map(_, value):
            return replace(present, value=_type_within(value, path[1:], kind))
    raise TypeError(f"{present} has no fields")


def _demanded(columns: tuple[Column, ...], path: Path, required: bool) -> tuple[Column, ...]:
    first, *rest = path

    def changed(column: Column) -> Column:
        if rest:
            return replace(column, type=_demanded_inside(column.type, tuple(rest), required))
        return replace(column, required=required)

    return tuple(changed(c) if c.name.lower() == first.lower() else c for c in columns)


def _demanded_inside(kind: Type, path: Path, required: bool) -> Type:
    match kind:
        case Struct(fields):
            return Struct(_demanded(fields, path, required))
        case Array(element):
            if path[1:]:
                return replace(kind, element=_demanded_inside(element, path[1:], required))
            return replace(kind, element_required=required)
        case Map(_, value):
            if path[1:]:
                return replace(kind, value=_demanded_inside(value, path[1:], required))
            return replace(kind, value_required=required)
    raise TypeError(f"{kind} has no fields")
