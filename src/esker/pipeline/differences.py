"""How contract, table and source differ, column by column, and which differences break something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from esker.contracts.evolution import Path, compare, find
from esker.engine.iceberg.table_metadata import Table
from esker.pipeline.alterations import (
    Declared,
    as_declared,
    file_format,
    is_in_order,
    is_reformatted,
    is_upgraded,
)
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
    found: list[Difference] = []
    expected = declared
    if present is not None:
        after = as_declared(pipeline, present)
        found += _declared(pipeline, contract, present, after)
        expected = after.kept
    if sent.columns and expected:
        found += _sent(pipeline, expected, declared, sent)
    return tuple(found)


def _declared(
    pipeline: Pipeline, contract: Contract | None, present: Table, after: Declared
) -> Iterator[Difference]:
    between: Between = "declared and table"
    declared = pipeline.declared_columns()
    for old, new in after.renamed:
        why = f'queries that name "{old}" fail from then on'
        yield Difference(between, f'column "{old}" becomes "{new}"', why)
    for path, column in after.found.added:
        yield Difference(between, f'column "{_named(path, column)}" is declared and not in the table yet')
    for path, kind in after.found.widened:
        yield Difference(between, f'column "{_named(path)}" becomes {kind}, which is wider')
    for conflict in after.found.conflicts:
        what = conflict.replace("in the source", "declared")
        yield Difference(between, what, "Iceberg cannot turn one into the other; the run stops")
    for path in after.relaxed:
        why = "queries that rely on a value may meet none"
        yield Difference(between, f'column "{_named(path)}" is no longer required', why)
    for path in after.required:
        refused = "rows without a value are refused, older ones stay"
        yield Difference(between, f'column "{_named(path)}" is required now: {refused}')
    if declared and contract is not None:
        for stored in after.stored:
            if find(declared, stored.name) is None and not is_own(stored.name):
                yield from _undeclared(pipeline, stored)
    yield from _formats(pipeline, present)
    if contract is not None and pipeline.column_order == "table" and not is_in_order(pipeline, after.stored):
        what = "the columns of the table are in another order than those of the contract, and stay so"
        yield Difference(between, f"{what}: column_order: declared moves them")
    yield from _identified(contract, present, between)


def _identified(contract: Contract | None, present: Table, between: Between) -> Iterator[Difference]:
    if contract is None or not contract.key or _is_same(contract, present):
        return
    required = {column.name.lower() for column in present.columns if column.required}
    if free := [name for name in contract.key if name.lower() not in required]:
        why = f"Iceberg wants required columns for that, and {', '.join(free)} may be empty in the table"
        yield Difference(between, f"rows are not identified by {', '.join(contract.key)}: {why}")
    elif present.identifier:
        yield Difference(
            between,
            f"rows are identified by {', '.join(contract.key)}, until now by {', '.join(present.identifier)}",
            "whoever joins or merges by the key counts on it",
        )


def _formats(pipeline: Pipeline, present: Table) -> Iterator[Difference]:
    between: Between = "declared and table"
    version, stored = pipeline.format_version, present.format_version
    if is_upgraded(pipeline, present):
        what = f"the table becomes one of format version {version}, until now {stored}"
        yield Difference(between, what, f"programs that know version {stored} only can no longer read it")
    elif "format_version" in pipeline.model_fields_set and version < stored:
        what = f"format version {version} is declared, and the table has {stored}"
        yield Difference(between, f"{what}: no table goes back, and it stays as it is")
    if is_reformatted(pipeline, present):
        what = f"new files become {pipeline.format}, until now {file_format(present)}"
        yield Difference(between, f"{what}; those that are there stay")


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
    found = compare(
        expected, sent.columns, is_text=sent.is_text, is_exact=sent.is_exact, is_loose=sent.is_loose
    )
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
        what = f'column "{_named(path)}" is {kind} in the source, which is wider'
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


def _is_same(contract: Contract, present: Table) -> bool:
    return {name.lower() for name in contract.key} == {name.lower() for name in present.identifier}


def _named(path: Path, column: Column | None = None) -> str:
    return ".".join(path if column is None else (*path, column.name))
