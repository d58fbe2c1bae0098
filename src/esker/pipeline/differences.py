"""How contract, table and source differ, column by column, and which differences break something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from esker.contracts.evolution import compare, find, with_changes
from esker.engine.iceberg.table import Table
from esker.project import Pipeline
from esker.project.contract import Contract
from esker.project.reserved import is_own
from esker.project.types import Column
from esker.sources import Sent

Between = Literal["declared and table", "source and table"]
_STOPS = "the run stops"
_NO_VALUE = "no row has a value for it, and it is required"


@dataclass(frozen=True)
class Difference:
    """One difference between two of contract (or declared columns), table and source."""

    between: Between
    what: str
    breaking: str | None = None
    """Why it breaks a run or those who read the table; None where nothing breaks."""

    def __str__(self) -> str:
        return f"{self.what}; breaking: {self.breaking}" if self.breaking else self.what

    def as_json(self) -> dict[str, Any]:
        return {
            "between": self.between,
            "difference": self.what,
            "breaking": self.breaking is not None,
            "why": self.breaking,
        }


def differences(
    pipeline: Pipeline, contract: Contract | None, present: Table | None, sent: Sent
) -> tuple[Difference, ...]:
    """Return how what is declared, what is stored and what is sent differ.

    Where the source has nothing new, nothing is known of it.
    """
    declared = pipeline.declared_columns()
    stored = present.columns if present is not None else declared
    found = list(_declared(pipeline, contract, present)) if present is not None else []
    if sent.columns and stored:
        expected = with_changes(stored, compare(stored, declared, is_text=False))
        found += _sent(pipeline, expected, declared, sent)
    return tuple(found)


def _declared(pipeline: Pipeline, contract: Contract | None, present: Table) -> Iterator[Difference]:
    between: Between = "declared and table"
    declared = pipeline.declared_columns()
    renamed = {}
    for new, declaration in pipeline.columns.items():
        old = declaration.renamed_from
        if old is not None and find(present.columns, new) is None and find(present.columns, old) is not None:
            renamed[old.lower()] = new
            yield Difference(
                between, f'column "{old}" becomes "{new}"', f'queries that name "{old}" fail from then on'
            )
    columns = tuple(
        Column(renamed.get(c.name.lower(), c.name), c.type, c.required, c.doc) for c in present.columns
    )
    found = compare(columns, declared, is_text=False)
    for path, column in found.added:
        yield Difference(between, f'column "{_named(path, column)}" is declared and not in the table yet')
    for path, kind in found.widened:
        yield Difference(between, f'column "{".".join(path)}" becomes {kind}, which is wider')
    for conflict in found.conflicts:
        what = conflict.replace("in the source", "declared")
        yield Difference(between, what, "Iceberg cannot turn one into the other; the run stops")
    for stored in columns:
        wanted = find(declared, stored.name)
        if wanted is None:
            if declared and contract is not None and not is_own(stored.name):
                yield from _undeclared(pipeline, stored)
        elif stored.required and not wanted.required and _is_relaxed(pipeline, stored.name):
            why = "queries that rely on a value may meet none"
            yield Difference(between, f'column "{stored.name}" is no longer required', why)
        elif wanted.required and not stored.required:
            what = (
                f'column "{stored.name}" is required now: rows without a value are refused, older ones stay'
            )
            yield Difference(between, what)
    if contract is not None and contract.key and present.identifier and not _is_same(contract, present):
        yield Difference(
            between,
            f"rows are identified by {', '.join(contract.key)}, until now by {', '.join(present.identifier)}",
            "whoever joins or merges by the key counts on it",
        )


def _undeclared(pipeline: Pipeline, stored: Column) -> Iterator[Difference]:
    between: Between = "declared and table"
    if stored.name.lower() in (name.lower() for name in pipeline.drop_columns):
        why = f'queries that name "{stored.name}" fail from then on'
        yield Difference(between, f'column "{stored.name}" is dropped', why)
    elif stored.name not in (pipeline.deleted_column, *pipeline.versions.names):
        yield Difference(between, f'column "{stored.name}" is in the table and not declared; it stays')


def _sent(
    pipeline: Pipeline, expected: tuple[Column, ...], declared: tuple[Column, ...], sent: Sent
) -> Iterator[Difference]:
    between: Between = "source and table"
    is_frozen = pipeline.evolution == "freeze"
    found = compare(expected, sent.columns, is_text=sent.is_text, is_exact=sent.is_exact)
    for path, column in found.added:
        name = f'column "{_named(path, column)}" ({column.type}) is new in the source'
        match pipeline.evolution:
            case "freeze":
                yield Difference(between, f"{name}, and evolution is freeze", _STOPS)
            case "discard_column":
                yield Difference(between, f"{name}, and left out")
            case "discard_row":
                yield Difference(between, f"{name}", "rows that carry it go to the quarantine")
            case _:
                yield Difference(between, f"{name}, and is added to the table")
    for path, kind in found.widened:
        is_stopped = pipeline.evolution != "evolve"
        what = f'column "{".".join(path)}" is {kind} in the source, which is wider'
        yield Difference(between, what, _STOPS if is_stopped or is_frozen else None)
    for conflict in found.conflicts:
        yield Difference(between, conflict, _STOPS)
    for column in expected:
        if is_own(column.name) or find(sent.columns, column.name) is not None:
            continue
        own = find(declared, column.name)
        if column.required or (own is not None and own.required):
            yield Difference(between, f'the source does not send column "{column.name}"', _NO_VALUE)
        elif own is not None:
            yield Difference(between, f'the source does not send column "{column.name}"')


def _is_relaxed(pipeline: Pipeline, name: str) -> bool:
    keys = [key.lower() for key in pipeline.key]
    declaration = next(d for n, d in pipeline.columns.items() if n.lower() == name.lower())
    return "required" in declaration.model_fields_set and name.lower() not in keys


def _is_same(contract: Contract, present: Table) -> bool:
    return {name.lower() for name in contract.key} == {name.lower() for name in present.identifier}


def _named(path: tuple[str, ...], column: Column) -> str:
    return ".".join((*path, column.name))
