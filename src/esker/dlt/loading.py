"""Load a package: table by table, each in one publish, dlt's own tables last."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from dlt.common.json import json
from dlt.common.schema import Schema
from dlt.common.time import ensure_pendulum_datetime

from esker.dlt.kept import Kept
from esker.dlt.marks import AbsentVersions, AllKeys, NestedOfRoots
from esker.dlt.package import LoadPackage
from esker.dlt.rows import Marks, PackageRows, loads_of
from esker.dlt.staged import StagedFiles
from esker.dlt.tables import DltTable, DltTables
from esker.engine.compat import arrow_schema
from esker.engine.iceberg.table import find_table
from esker.engine.session import Engine
from esker.errors import DltRefused, LoadLeftHalfway, PipelineBusy
from esker.ledger.entry import read_entry
from esker.pipeline.api import OpenProject
from esker.pipeline.run import run_pipeline
from esker.pipeline.tables import table_of
from esker.project.types import columns_as_json
from esker.sources.exact import with_columns
from esker.sources.spool import ArrowSpool


@dataclass(frozen=True)
class PackageLoading:
    """Loads one package into its tables."""

    project: OpenProject
    schema: Schema
    tables: DltTables
    package: LoadPackage

    def load(self, give_up: Iterable[str] = ()) -> None:
        """Load all tables. Those that have this package already are left alone.

        Raises LoadLeftHalfway, and the errors of a run; a later call goes on where this one ended.
        """
        self._check_earlier(set(give_up))
        own = set(self.schema.dlt_table_names())
        data = [table for table in self.tables.all.values() if table.name not in own]
        # Nested tables first: which of their rows go is found by the rows that they belong to, as stored.
        for table in sorted(data, key=lambda each: each.merge is not None and not each.merge.is_nested):
            self._load(table)
        state = self.schema.state_table_name
        if state in self.package.files:
            self._load(self.tables.all[state])
        self._load_version()
        self._load_loads()

    def _load(self, table: DltTable) -> None:
        is_meant = table.name in self.package.files or table.root in self.package.files
        files = self.package.files.get(table.name, StagedFiles(()))
        if table.name in self.package.truncated:
            self._truncate(table)
        if not is_meant or (table.merge is None and table.declared.mode == "append" and not files.paths):
            return
        query = self._query(table, files)
        marks = self._marks(table, files, query)
        if table.merge is not None and not files.paths and marks is None:
            return
        self._publish(table, lambda: files.rows(table.declared, query), marks)

    def _query(self, table: DltTable, files: StagedFiles) -> str | None:
        """Return which rows of the files count; None for all."""
        if table.merge is None:
            return None
        if not table.merge.is_nested:
            return files.survivors(table.merge)
        root = self.tables.all[table.root]
        assert root.merge is not None
        staged = self.package.files.get(root.name, StagedFiles(()))
        if table.merge.root_key is None or not files.paths or not staged.paths:
            return None
        return files.of_roots(table.merge, staged, root.merge)

    def _marks(self, table: DltTable, files: StagedFiles, query: str | None) -> Marks | None:
        """Return what finds the stored rows that go beside those which the rows of the load replace."""
        merge, engine = table.merge, self.tables.engine
        if merge is None or merge.strategy == "insert-only":
            return None
        if merge.strategy == "scd2":
            return None if merge.is_nested else AbsentVersions(engine, table, files)
        root = self.tables.all[table.root]
        staged = self.package.files.get(root.name, StagedFiles(()))
        if not merge.is_nested or not staged.paths:
            return None
        return NestedOfRoots(engine, table, root, query, staged)

    def _truncate(self, table: DltTable) -> None:
        """Take all rows out of a table that does not have this load yet."""
        engine, declared = self.tables.engine, table.declared
        found = find_table(engine, table_of(engine.project, declared))
        entry = read_entry(found.properties, table.pipeline) if found is not None else None
        if found is None or self.package.load_id in loads_of(entry.position if entry else None):
            return
        if declared.mode == "scd2":
            why = 'refresh="drop_data" would take away the versions that scd2 keeps.'
            raise DltRefused(declared.table, why, "Load into another dataset_name.")
        marks = AllKeys(engine, table) if declared.mode == "delete_insert" else None
        if marks is None:
            key = declared.key if declared.mode in ("upsert", "insert_only") else []
            guard = declared.guard.model_copy(update={"min_rows": 0})
            update = {"mode": "replace", "key": key, "guard": guard, "delete_when": None}
            declared = declared.model_copy(update=update)
        project = engine.project.model_copy(update={"pipelines": {table.pipeline: declared}})
        engine = Engine(project, engine.spark, engine.log)

        def make() -> ArrowSpool:
            spool = ArrowSpool(_schema(table))
            spool.finish()
            return spool

        self._run(table.pipeline, engine, PackageRows(engine, declared, None, make, marks))

    def _publish(self, table: DltTable, make: Callable[[], ArrowSpool], marks: Marks | None = None) -> None:
        """Load rows into a table, unless it has this load."""
        until = None
        if table.merge is not None and table.merge.strategy == "scd2":
            until = ensure_pendulum_datetime(table.boundary) if table.boundary else self.package.created_at
        engine = self.tables.engine
        rows = PackageRows(engine, table.declared, self.package.load_id, make, marks, until)
        self._run(table.pipeline, engine, rows)

    def _run(self, name: str, engine: Engine, rows: PackageRows) -> None:
        with closing(rows):
            result = run_pipeline(engine.project, lambda: engine, self.project.state, name, handed_over=rows)
        if result.error is not None:
            raise result.error
        if result.status == "skipped":
            raise PipelineBusy(name, result.notes[0] if result.notes else "unknown")

    def _load_version(self) -> None:
        """Store the schema, unless it is stored."""
        kept = Kept(self.tables.engine, self.schema, self.tables.dataset, self.tables.is_plain)
        if kept.schema("version_hash", self.schema.version_hash) is not None:
            return
        self._load_row(
            self.schema.version_table_name,
            {
                "version": self.schema.version,
                "engine_version": self.schema.ENGINE_VERSION,
                "inserted_at": datetime.now(UTC),
                "schema_name": self.schema.name,
                "version_hash": self.schema.version_hash,
                "schema": json.dumps(self.schema.to_dict()),
            },
        )

    def _load_loads(self) -> None:
        """Say that the load is complete: its state counts from now on."""
        self._load_row(
            self.schema.loads_table_name,
            {
                "load_id": self.package.load_id,
                "schema_name": self.schema.name,
                "status": 0,
                "inserted_at": datetime.now(UTC),
                "schema_version_hash": self.schema.version_hash,
            },
        )

    def _load_row(self, name: str, row: dict[str, object]) -> None:
        table = self.tables.all[name]
        named = {self.schema.naming.normalize_identifier(key): [value] for key, value in row.items()}

        def make() -> ArrowSpool:
            spool = ArrowSpool(_schema(table))
            spool.add(with_columns(pa.table(named), spool.schema))
            spool.finish()
            return spool

        self._publish(table, make)

    def _check_earlier(self, given_up: set[str]) -> None:
        """Raise LoadLeftHalfway when tables hold a load of this pipeline that was never completed."""
        latest: dict[str, list[str]] = {}
        for table in self.tables.all.values():
            found = find_table(self.tables.engine, table_of(self.tables.engine.project, table.declared))
            entry = read_entry(found.properties, table.pipeline) if found is not None else None
            if loads := loads_of(entry.position if entry else None):
                latest.setdefault(loads[-1], []).append(table.declared.table)
        suspects = set(latest) - given_up - {self.package.load_id}
        if not suspects:
            return
        known = Kept(self.tables.engine, self.schema, self.tables.dataset, self.tables.is_plain).completed(
            suspects
        )
        for load in sorted(suspects - known):
            raise LoadLeftHalfway(self.package.pipeline, load, latest[load])


def _schema(table: DltTable) -> pa.Schema:
    return arrow_schema(columns_as_json(table.declared.declared_columns()))
