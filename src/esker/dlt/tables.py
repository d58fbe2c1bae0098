"""The tables that a load package is for: checked all together, then made where they are missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dlt.common.destination.client import JobClientBase
from dlt.common.destination.typing import PreparedTableSchema
from dlt.common.destination.utils import resolve_merge_strategy
from dlt.common.schema import Schema
from dlt.common.schema.typing import C_DLT_ID, C_DLT_LOAD_ID
from dlt.common.schema.utils import get_nested_tables, get_root_table, has_table_seen_data

from esker.dlt.declared import Merge, declare, pipeline_name
from esker.engine.iceberg.create import create
from esker.engine.iceberg.table import find_table
from esker.engine.session import Engine
from esker.errors import DltRefused, DltSchemaConflict, ReservedName, TypeConflict, UnsuitableKey
from esker.load.keys import check_key
from esker.pipeline.alterations import alterations, creation
from esker.pipeline.api import OpenProject
from esker.pipeline.table_changes import CreateTable
from esker.pipeline.tables import table_of
from esker.project import Pipeline
from esker.project.reserved import why_reserved
from esker.project.types import Column
from esker.sources import Sent


@dataclass(frozen=True)
class DltTable:
    """One table of dlt, and what loads it."""

    name: str
    pipeline: str
    declared: Pipeline
    merge: Merge | None
    """How rows are merged; None where they are appended or replace all."""
    root: str
    boundary: Any = None
    """Of `scd2`: the moment at which versions begin and end, where one is declared."""


@dataclass(frozen=True)
class DltTables:
    """Tables, roots before the tables that are nested in them."""

    engine: Engine
    dataset: str
    all: Mapping[str, DltTable]
    is_plain: bool = False
    """The names of dlt's own tables have no underscore in front."""

    @classmethod
    def of(
        cls,
        client: JobClientBase,
        project: OpenProject,
        pipeline: str,
        dataset: str,
        names: Iterable[str],
        *,
        is_plain: bool = False,
    ) -> DltTables:
        """Declare the tables of some names, and those nested in them. Raises DltRefused."""
        schema = client.schema
        ids = [schema.naming.normalize_identifier(each) for each in (C_DLT_ID, C_DLT_LOAD_ID)]
        own_keys = _own_keys(schema)
        named = dict.fromkeys([*names, *(name for name in own_keys if name in schema.tables)])
        roots = dict.fromkeys(get_root_table(schema.tables, name)["name"] for name in named)
        found: dict[str, DltTable] = {}
        for root in roots:
            chain = [
                client.prepare_load_table(each["name"])
                for each in get_nested_tables(schema.tables, root)
                if each["name"] in named or (has_table_seen_data(each) and root in named)
            ]
            for table in chain:
                key = own_keys.get(table["name"], ())
                merge = None if key else _merge(client, table)
                has_nested = len(chain) > 1
                declared = declare(
                    project.project,
                    pipeline,
                    dataset,
                    table,
                    merge,
                    ids,
                    has_nested=has_nested,
                    own_key=key,
                    is_plain=is_plain,
                )
                name = pipeline_name(pipeline, table["name"])
                boundary = table.get("x-boundary-timestamp")
                found[table["name"]] = DltTable(table["name"], name, declared, merge, root, boundary)
        pipelines = {table.pipeline: table.declared for table in found.values()}
        copy = project.project.model_copy(update={"pipelines": pipelines})
        cls._check_names(dataset, found)
        return cls(Engine(copy, project.engine.spark, project.engine.log), dataset, found, is_plain)

    @staticmethod
    def _check_names(dataset: str, tables: Mapping[str, DltTable]) -> None:
        """Raise DltRefused for two tables of dlt that would be one."""
        names: dict[str, str] = {}
        for table in tables.values():
            if (other := names.setdefault(table.declared.table, table.name)) != table.name:
                raise DltRefused(
                    table.declared.table,
                    f'Tables "{other}" and "{table.name}" of dlt would be one in "{dataset}".',
                    "Rename the resource in dlt.",
                )

    def check(self) -> None:
        """Raise DltSchemaConflict unless all rows that dlt's schema allows fit the tables as they are."""
        conflicts: list[str] = []
        for table in self.all.values():
            try:
                self._check(table)
            except TypeConflict as error:
                conflicts.append(f'table "{table.declared.table}": {error.reason.rstrip(".")}')
            except (UnsuitableKey, ReservedName) as error:
                reason = error.reason.rstrip(".")
                conflicts.append(f"{error.message}: {reason}" if reason else error.message)
        if conflicts:
            raise DltSchemaConflict(self.dataset, conflicts)

    def _check(self, table: DltTable) -> None:
        pipeline = table.declared
        place = table_of(self.engine.project, pipeline)
        self.engine.open_catalog(place.catalog)
        for column in pipeline.columns:
            if why := why_reserved(column):
                raise ReservedName(pipeline.table, column, why)
        present = find_table(self.engine, place)
        if present is None:
            columns = creation(pipeline, place, _sent(pipeline)).columns
        else:
            columns = alterations(pipeline, present, _sent(pipeline)).columns
        if pipeline.is_keyed:
            check_key(pipeline, columns)

    def create(self) -> None:
        """Make the tables that are missing, with their keys as identifier fields."""
        for table in self.all.values():
            pipeline = table.declared
            place = table_of(self.engine.project, pipeline)
            if find_table(self.engine, place) is not None:
                continue
            for change in creation(pipeline, place, _sent(pipeline)).changes:
                assert isinstance(change, CreateTable)
                is_unique = pipeline.mode in ("upsert", "insert_only")
                key = tuple(pipeline.key) if is_unique else ()
                create(self.engine, replace(change.table, identifier=key))


def _merge(client: JobClientBase, table: PreparedTableSchema) -> Merge | None:
    strategy = resolve_merge_strategy(client.schema.tables, table, client.capabilities)
    if strategy is None:
        return None
    root = client.prepare_load_table(get_root_table(client.schema.tables, table["name"])["name"])
    found = Merge.of(table, strategy)
    if not found.is_nested:
        return found
    of_root = Merge.of(root, strategy)
    is_keyed = of_root.primary_key or of_root.merge_key or strategy == "scd2"
    return found if is_keyed else None  # without a key, dlt appends


def _own_keys(schema: Schema) -> dict[str, list[str]]:
    """Return the keys of the tables that are dlt's own, by the tables' names."""
    keys = {
        schema.version_table_name: ["version_hash", "schema_name"],
        schema.loads_table_name: ["load_id", "schema_name"],
        schema.state_table_name: ["_dlt_load_id", "pipeline_name"],
    }
    return {table: [schema.naming.normalize_identifier(name) for name in key] for table, key in keys.items()}


def _sent(pipeline: Pipeline) -> Sent:
    return Sent(tuple(Column(column.name, column.type) for column in pipeline.declared_columns()))
