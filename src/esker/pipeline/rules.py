"""Put together the rules that the rows of a pipeline are checked by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame

from esker.contracts.plugged_in import PluggedInRows, installed
from esker.contracts.reference import check_reference
from esker.contracts.related import ReferencedRows, UniqueRows
from esker.contracts.rules import CheckedRule, Related, RowRules, broken_sql
from esker.engine.failures import JvmFailure, causes, first_line
from esker.engine.iceberg.rows import pinned_rows
from esker.engine.iceberg.table import TableId
from esker.engine.kept import KeptFrames
from esker.engine.session import Engine
from esker.errors import InvalidRule
from esker.ledger.live_rows import without_deleted
from esker.load.audits import check_audits
from esker.pipeline.tables_by_spark import TablesBySpark
from esker.project import Pipeline
from esker.project.contract import Contract
from esker.project.contract.model import PluggedIn, Reference, RowRule, Unique
from esker.project.types import Column, ddl, quoted

_BY_CHANCE = re.compile(r"\b(rand|randn|random|uuid|shuffle|monotonically_increasing_id)\s*\(", re.IGNORECASE)
_BESIDE_OTHERS = ("append", "upsert", "insert_only", "delete_insert")
"""Modes in which rows of the table stay beside those of a batch."""
_taken: WeakKeyDictionary[Engine, set[tuple[tuple[str | None, ...], tuple[Column, ...]]]] = (
    WeakKeyDictionary()
)
"""Conditions and queries that Spark has taken already, with the columns that it took them for."""


def row_rules(
    engine: Engine, name: str, table: TableId, kept: KeptFrames, *, is_statement: bool, is_part: bool
) -> RowRules:
    """Return the rules for rows of a pipeline. Raises UnknownReference.

    Rows of a statement are not looked for in the table: they may be its own. A batch that is only a part of
    what the source holds stands beside what is stored, whatever the mode.
    """
    contract = engine.project.contract(name)
    if contract is None:
        return RowRules()
    pipeline = engine.project.pipeline(name)
    related: list[Related] = []
    for rule in contract.rules:
        flag = f"_esker_flag{len(related)}"
        match rule:
            case Unique() if not _is_key(pipeline, rule.columns) and not is_statement:
                checked = CheckedRule(rule.name, rule.severity, rule.limits, rule.bound)
                key = tuple(pipeline.key) if pipeline.is_keyed else ()
                stored = _stored(engine, pipeline, table) if is_part or _is_beside(pipeline) else None
                related.append(UniqueRows(checked, flag, rule.columns, key, stored))
            case Reference():
                related.append(_reference(engine, contract, rule, table.catalog, flag))
            case PluggedIn() if rule.engine in installed():
                checked = CheckedRule(rule.name, rule.severity, rule.limits)
                check = installed()[rule.engine]
                related.append(PluggedInRows(checked, flag, rule.engine, check, rule.implementation, kept))
    return RowRules.of(contract, tuple(related)).at(datetime.now(UTC))


def check_rules(engine: Engine, contract: Contract, columns: tuple[Column, ...], table: TableId) -> None:
    """Raise InvalidRule for SQL that Spark cannot take for a table with these columns."""
    rules = [rule for rule in contract.rules if isinstance(rule, RowRule)]
    known = _taken.setdefault(engine, set())
    asked = (*(rule.condition for rule in rules), *(audit.query for audit in contract.audits)), columns
    if asked in known:
        return
    if rules:
        _check_conditions(engine, rules, columns)
    check_audits(engine, contract.audits, columns, table)
    known.add(asked)


def _check_conditions(engine: Engine, rules: Sequence[RowRule], columns: tuple[Column, ...]) -> None:
    # A row without values: nothing but the rules themselves can be wrong. Spark must not know that there are
    # none: it would look at no rule then. Nor need Python make it: that takes a process.
    nothing = engine.spark.range(1, numPartitions=1).selectExpr(
        *(f"get(CAST(array() AS ARRAY<{ddl(c.type)}>), CAST(id AS INT)) AS {quoted(c.name)}" for c in columns)
    )

    def run(conditions: Iterable[str]) -> None:
        nothing.selectExpr(*map(broken_sql, conditions)).collect()

    for rule in rules:
        if _BY_CHANCE.search(rule.condition):
            raise InvalidRule(rule.place, rule.name, "it gives another answer each time")
    try:
        run(rule.condition for rule in rules)
    except JvmFailure:
        for rule in rules:
            try:
                run([rule.condition])
            except JvmFailure as error:
                raise InvalidRule(rule.place, rule.name, first_line(causes(error)[-1].message)) from error
        raise


def unchecked(contract: Contract) -> tuple[str, ...]:
    """Return what stands in a contract and is not checked, in words."""
    absent = [
        f'rule "{rule.name}" is not checked: no installed package knows the engine "{rule.engine}"'
        for rule in contract.rules
        if isinstance(rule, PluggedIn) and rule.engine not in installed()
    ]
    return (*contract.notes, *absent)


def awaited(engine: Engine, name: str, table: TableId) -> tuple[str, ...]:
    """Return which tables must be there before rows of a pipeline can be checked, and are not, in words."""
    contract = engine.project.contract(name)
    return tuple(
        f'rule "{rule.name}" looks into table "{rule.table}", which is not there; without it the run stops'
        for rule in (contract.rules if contract is not None else ())
        if isinstance(rule, Reference)
        and TablesBySpark(engine).find(TableId(table.catalog, rule.table)) is None
    )


def _is_key(pipeline: Pipeline, columns: tuple[str, ...]) -> bool:
    """Tell whether columns are the key by which rows are compared: the mode sees to it then."""
    return pipeline.is_keyed and {n.lower() for n in columns} == {n.lower() for n in pipeline.key}


def _is_beside(pipeline: Pipeline) -> bool:
    return pipeline.mode in _BESIDE_OTHERS


def _stored(engine: Engine, pipeline: Pipeline, table: TableId) -> DataFrame | None:
    """Return the rows that stay in the table beside those of a batch; None when there are none."""
    present = TablesBySpark(engine).find(table)
    if present is None or present.snapshot is None:
        return None
    return without_deleted(pipeline, pinned_rows(engine, present))


def _reference(
    engine: Engine, contract: Contract, rule: Reference, catalog: str, flag: str
) -> ReferencedRows:
    present = check_reference(contract, rule, TablesBySpark(engine).find(TableId(catalog, rule.table)))
    checked = CheckedRule(rule.name, rule.severity, rule.limits)
    others = pinned_rows(engine, present)
    return ReferencedRows(checked, flag, rule.columns, rule.table, rule.to, others)
