"""Compare the columns that a source sends with those that a table has."""

from __future__ import annotations

from dataclasses import dataclass

from esker.project.types import Array, Column, Decimal, Map, Plain, Struct, Type

_WIDER = {"int": ("bigint",), "float": ("double",)}


@dataclass(frozen=True)
class Differences:
    """What must be added to the table, and what cannot be loaded into it."""

    added: tuple[tuple[tuple[str, ...], Column], ...]
    conflicts: tuple[str, ...]


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
    added: list[tuple[tuple[str, ...], Column]] = []
    conflicts: list[str] = []
    _compare(table, sent, (), added, conflicts, _Rules(is_text, is_exact))
    return Differences(tuple(added), tuple(conflicts))


def with_added(table: tuple[Column, ...], differences: Differences) -> tuple[Column, ...]:
    """Return a table's columns as they are after the additions."""
    columns = table
    for path, column in differences.added:
        columns = _insert(columns, path, column)
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
    added: list[tuple[tuple[str, ...], Column]],
    conflicts: list[str],
    rules: _Rules,
) -> None:
    for column in sent:
        present = find(table, column.name)
        if present is None:
            # A column that older rows lack cannot be required.
            added.append((path, Column(column.name, column.type, doc=column.doc)))
        else:
            name = (*path, present.name)
            if rules.is_exact and column.name != present.name:
                conflicts.append(f'column "{".".join(name)}" is written "{column.name}" in the source')
            _compare_types(present.type, column.type, name, added, conflicts, rules)


def _compare_types(
    table: Type,
    sent: Type,
    path: tuple[str, ...],
    added: list[tuple[tuple[str, ...], Column]],
    conflicts: list[str],
    rules: _Rules,
) -> None:
    match table, sent:
        case Struct(have), Struct(get):
            _compare(have, get, path, added, conflicts, rules)
        case Array(have_element), Array(get_element):
            _compare_types(have_element, get_element, (*path, "element"), added, conflicts, rules)
        case Map(have_key, have_value), Map(get_key, get_value):
            # Iceberg lets no map key gain fields.
            missing: list[tuple[tuple[str, ...], Column]] = []
            _compare_types(have_key, get_key, (*path, "key"), missing, conflicts, rules)
            if missing:
                conflicts.append(_conflict((*path, "key"), have_key, get_key))
            _compare_types(have_value, get_value, (*path, "value"), added, conflicts, rules)
        case Plain() | Decimal(), Plain() | Decimal() if rules.is_text or is_widening(sent, table):
            pass
        case _:
            conflicts.append(_conflict(path, table, sent))


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


def _insert_into(kind: Type, path: tuple[str, ...], column: Column) -> Type:
    match kind:
        case Struct(fields):
            return Struct(_insert(fields, path, column))
        case Array(element):
            return Array(_insert_into(element, path[1:], column))
        case Map(key, value):
            return Map(key, _insert_into(value, path[1:], column))
    raise TypeError(f"{kind} has no fields")
