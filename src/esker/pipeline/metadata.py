"""What is known of a table: declared, agreed in its contract, and stored. One object to ask."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from esker.contracts.evolution import find
from esker.engine.iceberg.table_id import TableId
from esker.engine.iceberg.table_metadata import Table
from esker.errors import TableNotFound
from esker.ledger.entry import read_entry, read_head
from esker.ledger.owed import SIDES, Named
from esker.pipeline.tables import own_tables, table_of
from esker.pipeline.tables_seen import Statistics, TablesSeen
from esker.project import Pipeline
from esker.project.contract import Contract
from esker.project.contract.model import ContractColumn
from esker.project.reserved import is_own
from esker.project.types import Column


@dataclass(frozen=True)
class KnownColumn:
    """A column, and what the contract says of it."""

    column: Column
    is_stored: bool
    """False where it is declared, and the table does not have it yet."""
    agreed: ContractColumn | None

    def as_json(self) -> dict[str, Any]:
        column, agreed = self.column, self.agreed
        return {
            "name": column.name,
            "type": str(column.type),
            "required": column.required,
            "doc": column.doc,
            "stored": self.is_stored,
            "unique": agreed.is_unique if agreed else False,
            "classification": agreed.classification if agreed else None,
            "tags": list(agreed.tags) if agreed else [],
        }


@dataclass(frozen=True)
class Layout:
    """How a table's files are laid out."""

    partition_by: tuple[str, ...]
    sort_by: tuple[str, ...]
    format: str
    format_version: int
    properties: dict[str, str]


@dataclass(frozen=True)
class Upstream:
    """A pipeline that loads into a table, where its rows come from, and how far it is."""

    pipeline: str
    source: str
    reads: str
    contract: str | None
    position: Any
    changeset: int | None
    run: str | None


@dataclass(frozen=True)
class Lineage:
    """Where a table's rows come from, and the tables that are kept beside it."""

    upstream: tuple[Upstream, ...]
    beside: tuple[str, ...]
    changeset: int | None
    """The newest one of the table."""


class TableMetadata:
    """What is known of one table. Each fact is looked up when somebody asks for it, and then kept."""

    def __init__(self, tables: TablesSeen, table: TableId) -> None:
        self.tables, self.id = tables, table

    @classmethod
    def of(cls, tables: TablesSeen, table: TableId) -> TableMetadata:
        """Return what is known of a table, or raise TableNotFound where nothing is."""
        found = cls(tables, table)
        if found.stored is None and not found.pipelines:
            raise TableNotFound(str(table), tables.names(table.catalog))
        return found

    @cached_property
    def stored(self) -> Table | None:
        """The table as it is; None before the first run."""
        return self.tables.find(self.id)

    @cached_property
    def pipelines(self) -> dict[str, Pipeline]:
        """The pipelines that load into it."""
        project = self.tables.project
        return {name: p for name, p in project.pipelines.items() if table_of(project, p) == self.id}

    @property
    def contract(self) -> Contract | None:
        """What it promises; of several pipelines the first contract."""
        found = (self.tables.project.contract(name) for name in self.pipelines)
        return next((contract for contract in found if contract is not None), None)

    @property
    def columns(self) -> tuple[KnownColumn, ...]:
        """Its columns, also those that are declared and not stored yet, without Esker's own."""
        stored = tuple(c for c in self.stored.columns if not is_own(c.name)) if self.stored else ()
        agreed = {column.name.lower(): column for column in self.contract.columns} if self.contract else {}
        declared = (c for pipeline in self.pipelines.values() for c in pipeline.declared_columns())
        lacking = {c.name.lower(): c for c in declared if find(stored, c.name) is None}
        return tuple(
            KnownColumn(column, is_stored, agreed.get(column.name.lower()))
            for columns, is_stored in ((stored, True), (lacking.values(), False))
            for column in columns
        )

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row: of the contract, of a pipeline, or as the table says."""
        if self.contract is not None and self.contract.key:
            return self.contract.key
        declared = next((tuple(p.key) for p in self.pipelines.values() if p.key), ())
        return declared or (self.stored.identifier if self.stored else ())

    @property
    def layout(self) -> Layout:
        """How its files are laid out, or would be."""
        if (stored := self.stored) is not None:
            return Layout(
                stored.partition_fields,
                tuple(str(field) for field in stored.sort_fields),
                stored.properties.get("write.format.default", "parquet"),
                stored.format_version,
                {key: value for key, value in stored.properties.items() if not key.startswith("esker.")},
            )
        pipeline = next(iter(self.pipelines.values()))
        return Layout(
            tuple(pipeline.partition_by),
            tuple(str(field) for field in pipeline.sort_fields()),
            pipeline.format,
            pipeline.format_version,
            dict(pipeline.properties),
        )

    @property
    def lineage(self) -> Lineage:
        """Where its rows come from, and what is kept beside it."""
        properties = self.stored.properties if self.stored else {}
        head = read_head(properties)
        sides = (Named.by(properties, name) for name in SIDES)
        named = [TableId(self.id.catalog, side.table) for side in sides if side is not None]
        own = [each.table for each in own_tables(self.tables.project, self.id)]
        there = [each for each in own if each not in named and self.tables.exists(each)]
        return Lineage(
            upstream=tuple(self._upstream(name, p) for name, p in self.pipelines.items()),
            beside=tuple(str(table) for table in (*named, *there)),
            changeset=head.changeset if head else None,
        )

    @cached_property
    def statistics(self) -> Statistics | None:
        """Rows, files, bytes, and per column nulls and bounds, from the files' metadata; no row is read."""
        return None if self.stored is None else self.tables.statistics(self.stored)

    def _upstream(self, name: str, pipeline: Pipeline) -> Upstream:
        entry = read_entry(self.stored.properties, name) if self.stored else None
        contract = self.tables.project.contract(name)
        return Upstream(
            pipeline=name,
            source=pipeline.source.type,
            reads=pipeline.source.reads,
            contract=f"{contract.id} {contract.version} ({contract.status})" if contract else None,
            position=entry.position if entry else None,
            changeset=entry.changeset if entry else None,
            run=entry.run if entry else None,
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it but the statistics, which cost a look at every file's metadata."""
        contract = self.contract
        return {
            "table": str(self.id),
            "catalog": self.id.catalog,
            "exists": self.stored is not None,
            "columns": [column.as_json() for column in self.columns],
            "key": list(self.key),
            "layout": asdict(self.layout),
            "contract": {
                "file": contract.file,
                "id": contract.id,
                "version": contract.version,
                "status": contract.status,
                "rules": [rule.name for rule in contract.rules],
                "audits": [audit.name for audit in contract.audits],
            }
            if contract
            else None,
            "lineage": asdict(self.lineage),
        }
