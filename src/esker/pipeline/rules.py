"""Put together the rules that the rows of a pipeline are checked by."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from esker.contracts.evolution import find
from esker.contracts.plugged_in import PluggedInRows, installed
from esker.contracts.related import ReferencedRows, UniqueRows
from esker.contracts.rules import CheckedRule, Related, RowRules
from esker.engine.failures import JvmFailure, causes, first_line
from esker.engine.iceberg.table import TableId, find_table
from esker.engine.kept import KeptFrames
from esker.engine.session import Engine
from esker.errors import InvalidRule, UnknownReference
from esker.project import Pipeline
from esker.project.contract import Contract
from esker.project.contract.model import PluggedIn, Reference, RowRule, Unique
from esker.project.types import Column, columns_as_json, quoted

_BESIDE_OTHERS = ("append", "upsert", "insert_only", "delete_insert")
"""Modes in which rows of the table stay beside those of a batch."""


def row_rules(engine: Engine, name: str, table: TableId, kept: KeptFrames) -> RowRules:
    """Return the rules for rows of a pipeline. Raises UnknownReference."""
    contract = engine.project.contract(name)
    if contract is None:
        return RowRules()
    pipeline = engine.project.pipeline(name)
    related: list[Related] = []
    for rule in contract.rules:
        flag = f"_esker_flag{len(related)}"
        match rule:
            case Unique() if not _is_key(pipeline, rule.columns):
                checked = CheckedRule(rule.name, rule.severity, rule.limits, rule.bound)
                key = tuple(pipeline.key) if pipeline.is_keyed else ()
                stored = partial(_stored, engine, pipeline, table)
                related.append(UniqueRows(checked, flag, rule.columns, key, stored))
            case Reference():
                related.append(_reference(engine, contract, rule, table.catalog, flag))
            case PluggedIn() if rule.engine in installed():
                checked = CheckedRule(rule.name, rule.severity, rule.limits)
                check = installed()[rule.engine]
                related.append(PluggedInRows(checked, flag, rule.engine, check, rule.implementation, kept))
    return RowRules.of(contract, tuple(related))


def check_rules(engine: Engine, contract: Contract, columns: tuple[Column, ...]) -> None:
    """Raise InvalidRule for a condition that Spark cannot take for these columns."""
    rules = [rule for rule in contract.rules if isinstance(rule, RowRule)]
    if not rules:
        return
    columns = tuple(replace(column, required=False) for column in columns)
    schema = StructType.fromJson(columns_as_json(columns))
    # A row without values: nothing but the rules themselves can be wrong.
    nothing = engine.spark.createDataFrame([(None,) * len(columns)], schema)

    def run(conditions: list[str]) -> None:
        nothing.select(*(F.expr(condition).cast("boolean") for condition in conditions)).collect()

    try:
        run([rule.condition for rule in rules])
    except JvmFailure:
        for rule in rules:
            try:
                run([rule.condition])
            except JvmFailure as error:
                place = f"{rule.file}:{rule.line}" if rule.line else rule.file
                raise InvalidRule(place, rule.name, first_line(causes(error)[-1].message)) from error
        raise


def unchecked(contract: Contract) -> tuple[str, ...]:
    """Return what stands in a contract and is not checked, in words."""
    absent = [
        f'rule "{rule.name}" is not checked: no installed package knows the engine "{rule.engine}"'
        for rule in contract.rules
        if isinstance(rule, PluggedIn) and rule.engine not in installed()
    ]
    return (*contract.notes, *absent)


def _is_key(pipeline: Pipeline, columns: tuple[str, ...]) -> bool:
    """Tell whether columns are the key by which rows are compared: the mode sees to it then."""
    return pipeline.is_keyed and {n.lower() for n in columns} == {n.lower() for n in pipeline.key}


def _stored(engine: Engine, pipeline: Pipeline, table: TableId) -> DataFrame | None:
    """Return the rows that stay in the table beside those of a batch; None when there are none."""
    if pipeline.mode not in _BESIDE_OTHERS:
        return None
    rows = engine.spark.table(table.sql)
    if pipeline.keeps_deleted and pipeline.deleted_column in rows.columns:
        rows = rows.where(~F.coalesce(F.col(quoted(pipeline.deleted_column)), F.lit(False)))
    return rows


def _reference(
    engine: Engine, contract: Contract, rule: Reference, catalog: str, flag: str
) -> ReferencedRows:
    other = TableId(catalog, rule.table)
    present = find_table(engine, other)
    if present is None:
        raise UnknownReference(contract.file, rule.name, f'there is no table "{rule.table}"')
    for name in rule.to:
        if find(present.columns, name) is None:
            raise UnknownReference(contract.file, rule.name, f'table "{rule.table}" has no column "{name}"')
    checked = CheckedRule(rule.name, rule.severity, rule.limits)
    others = partial(engine.spark.table, other.sql)
    return ReferencedRows(checked, flag, rule.columns, rule.table, rule.to, others)
