"""Compare the columns that a source sends with those that a table has."""

from __future__ import annotations

from dataclasses import dataclass, replace

from esker.project.types import Array, Column, Decimal, Map, Plain, Struct, Type

Added = tuple[tuple[tuple[str, ...], Column], ...]
"""Columns, each with the path of the struct that it belongs to."""
_WIDER = {"int": ("bigint",), "float": ("double",)}


@dataclass(frozen=True)
class Differences:
    """What must be added to the table or widened in it, and what cannot be loaded into it."""

    added: Added
    widened: tuple[tuple[tuple[str, ...], Type], ...]
    conflicts: tuple[str, ...]


@dataclass
class _Found:
    """Differences as they are found."""

    added: list[tuple[tuple[str, ...], Column]]
    widened: list[tuple[tuple[str, ...], Type]]
    conflicts: list[str]


@dataclass(frozen=True)
class _Rules:
    is_text: bool
    is_exact: bool


def compare(
    table: tuple[Column, ...], sent: tuple[Column, ...], *, is_text: bool, is_exact: bool = False
) -> Differences:
    """Return the differences between a table's columns and a source's.

    Text fits any plain type here; whether each value does is checked row by row. With `is_exact` the
    source's values are found by the exact name, so that another case would find nothing.
    """
    found = _Found([], [], [])
    _compare(table, sent, (), found, _Rules(is_text, is_exact))
    return Differences(tuple(found.added), tuple(found.widened), tuple(found.conflicts))


def with_changes(table: tuple[Column, ...], differences: Differences) -> tuple[Column, ...]:
    """Return a table's columns as they are after the additions and widenings."""
    columns = table
    for path, column in differences.added:
        columns = _insert(columns, path, column)
    for path, kind in differences.widened:
        columns = _with_type(columns, path, kind)
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


def _compare(
    table: tuple[Column, ...],
    sent: tuple[Column, ...],
    path: tuple[str, ...],
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
    path: tuple[str, ...],
    found: _Found,
    rules: _Rules,
) -> None:
    match table, sent:
        case Struct(have), Struct(get):
            _compare(have, get, path, found, rules)
        case Array(have_element), Array(get_element):
            _compare_types(have_element, get_element, (*path, "element"), found, rules)
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
            for name in ("added", "widened", "conflicts"):
                once = dict.fromkeys(getattr(of_entries, name))
                getattr(found, name).extend(once)
        case Plain(stored=have_stored), Plain(stored=str(stored)) if have_stored != stored:
            found.conflicts.append(_conflict(path, table, sent))
        case Plain() | Decimal(), Plain() | Decimal() if rules.is_text or is_widening(sent, table):
            pass
        case Plain() | Decimal(), Plain() | Decimal() if _may_become(table, sent):
            found.widened.append((path, sent))
        case _:
            found.conflicts.append(_conflict(path, table, sent))


def _may_become(table: Type, wider: Type) -> bool:
    """Tell whether Iceberg lets a column of one type become another without rewriting files."""
    match table, wider:
        case Plain(name), Plain(other):
            return other in _WIDER.get(name, ())
        case Decimal(precision, scale), Decimal(more, same):
            return scale == same and more > precision
    return False


def _conflict(path: tuple[str, ...], table: Type, sent: Type) -> str:
    return f'column "{".".join(path)}" is {table} in the table and {sent} in the source'


def _insert(columns: tuple[Column, ...], path: tuple[str, ...], column: Column) -> tuple[Column, ...]:
    if not path:
        return (*columns, column)
    first, *rest = path
    return tuple(
        Column(c.name, _insert_into(c.type, tuple(rest), column), c.required, c.doc)
        if c.name.lower() == first.lower()
        else c
        for c in columns
    )


def _with_type(columns: tuple[Column, ...], path: tuple[str, ...], kind: Type) -> tuple[Column, ...]:
    first, *rest = path
    return tuple(
        replace(c, type=_type_within(c.type, tuple(rest), kind)) if c.name.lower() == first.lower() else c
        for c in columns
    )


def _type_within(present: Type, path: tuple[str, ...], kind: Type) -> Type:
    if not path:
        return kind
    match present:
        case Struct(fields):
            return Struct(_with_type(fields, path, kind))
        case Array(element):
            return Array(_type_within(element, path[1:], kind))
        case Map(key, value):
            return Map(key, _type_within(value, path[1:], kind))
    raise TypeError(f"{present} has no fields")


def _insert_into(kind: Type, path: tuple[str, ...], column: Column) -> Type:
    match kind:
        case Struct(fields):
            return Struct(_insert(fields, path, column))
        case Array(element):
            return Array(_insert_into(element, path[1:], column))
        case Map(key, value):
            return Map(key, _insert_into(value, path[1:], column))
    raise TypeError(f"{kind} has no fields")
