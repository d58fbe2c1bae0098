"""What a SQL statement may do to the tables of a project's pipelines.

Everything may be read. What would break a promise (a ledger that no longer fits its table, a change log
with holes) is refused, and the right way is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from esker.engine.iceberg.table import TableId
from esker.engine.statement import ROW_WRITES, Name, Parsed
from esker.errors import SqlRefused
from esker.pipeline.tables import system_tables, table_of
from esker.project import Project
from esker.project.system_tables import SystemTableKind

_HARMLESS = (
    *("AddColumns", "AlterColumns", "AlterColumn", "CommentOnTable", "RefreshTable"),
    *("AnalyzeTable", "AnalyzeColumn", "SetTableProperties", "UnsetTableProperties"),
    *("AddPartitionField", "DropPartitionField", "ReplacePartitionField"),
    *("SetWriteDistributionAndOrdering", "SetIdentifierFields", "DropIdentifierFields"),
    *("CreateOrReplaceBranch", "CreateOrReplaceTag", "DropBranch", "DropTag"),
)
"""Statements on a pipeline's table that leave its rows and Esker's columns as they are."""

_PROCEDURES = (
    *("rewrite_data_files", "rewrite_manifests", "rewrite_position_delete_files", "expire_snapshots"),
    *("remove_orphan_files", "ancestors_of", "create_changelog_view", "compute_table_stats"),
    "compute_partition_stats",
)
"""Procedures that keep a pipeline's table what it is."""

_BACK = (
    "Main never goes back: write the difference as a change of its own, such as MERGE INTO {table} AS t "
    "USING (SELECT * FROM {table} VERSION AS OF …) AS s ON t.key = s.key …"
)
_REMEDIES = {
    "DropTable": "Take the pipeline out of the project file first; then nothing counts on the table.",
    "RenameTable": "Make a new table with another `table:` in the project file.",
    "CreateTable": "The first run makes it; esker adopt takes over one that is there already.",
    "CreateTableAsSelect": "The first run makes it; esker adopt takes over one that is there already.",
    "TruncateTable": "DELETE FROM {table} goes through the loader.",
    "ReplaceTable": "DELETE FROM {table}, then INSERT INTO it; or `mode: replace`.",
    "ReplaceTableAsSelect": "DELETE FROM {table}, then INSERT INTO it; or `mode: replace`.",
    "DropColumns": "Name the columns in `drop_columns:` of the pipeline, then: esker plan --apply",
    "ReplaceColumns": "Name columns in `drop_columns:` of the pipeline, then: esker plan --apply",
    "RenameColumn": "Give the column `renamed_from:` in the pipeline's `columns:`; the next run renames it.",
    "add_files": "esker adopt {table} --files 'folder/*.parquet'",
    **dict.fromkeys(("rollback_to_snapshot", "rollback_to_timestamp", "set_current_snapshot"), _BACK),
}


@dataclass(frozen=True)
class Managed:
    """A table that a pipeline writes to, or one of Esker's own."""

    pipeline: str
    table: TableId
    kind: SystemTableKind | None = None
    """What it is of Esker's own tables; None for a pipeline's."""


def managed_tables(project: Project) -> Mapping[tuple[str, str], Managed]:
    """Return the tables of all pipelines, and Esker's own, by catalog and lowercase name."""
    found: dict[tuple[str, str], Managed] = {}
    for own in system_tables(project):
        place = own.table.catalog, own.table.name.lower()
        found.setdefault(place, Managed(own.pipeline, own.table, own.kind))
    for name, pipeline in project.pipelines.items():
        table = table_of(project, pipeline)
        found[table.catalog, table.name.lower()] = Managed(name, table)
    return found


@dataclass(frozen=True)
class Guard:
    """Looks at statements before they run."""

    project: Project
    catalog: str
    """Where names without a catalog are looked for."""
    namespace: Name

    def target(self, statement: Parsed) -> Managed | None:
        """Return the pipeline's table that a statement writes rows to, if it does; raise SqlRefused.

        None means that the statement may run as it is.
        """
        if statement.kind in ("UnresolvedExecuteImmediate", "CompoundBody"):
            raise SqlRefused(
                "a statement inside a statement", "Esker cannot see what it would do.", "Write it out."
            )
        if statement.is_computed and not _only_looks(statement):
            why = "Esker cannot see what it would change."
            raise SqlRefused("a change of what IDENTIFIER(…) names", why, "Write the name out.")
        if (statement.keys and statement.kind == "SetCommand") or statement.kind == "ResetCommand":
            why = "The session is Esker's own: loads count on its time zone and its types."
            raise SqlRefused(
                "a change of settings", why, "Write settings below `spark: conf:` in the project file."
            )
        if statement.kind.startswith("CacheTable"):
            why = "Spark would go on reading the rows of this moment, in loads of the same process, too."
            raise SqlRefused("a cache", why, "Make a table, or a temporary view.")
        self._check_namespace(statement)
        self._check_procedure(statement)
        managed = managed_tables(self.project)
        hit = [managed[name] for target in statement.targets if (name := self._named(target)) in managed]
        if not hit or _only_looks(statement):
            return None
        table = hit[0]
        if table.kind is not None:
            raise SqlRefused(
                f'a change of table "{table.table}"',
                f'Esker writes it for pipeline "{table.pipeline}", and counts on its rows.',
                table.kind.remedy,
            )
        if statement.inner_writes:
            raise SqlRefused(
                f'a write to table "{table.table}" inside another statement',
                "What it would write cannot be taken apart.",
                "Write INSERT INTO … WITH … SELECT …, one statement for each table.",
            )
        if statement.is_overwrite:
            raise self._refused(statement.kind, table, "TruncateTable")
        if statement.kind in ROW_WRITES:
            return table
        if statement.kind not in _HARMLESS:
            raise self._refused(statement.kind, table, statement.kind)
        if statement.branch == "main":
            raise self._refused("a replaced branch main", table, "set_current_snapshot")
        if own := [key for key in statement.keys if key.lower().startswith("esker.")]:
            raise SqlRefused(
                f'a change of property "{own[0]}" of table "{table.table}"',
                "The ledger stands there: it may only change together with the rows.",
                "Let it be; see docs/how-to/when-it-fails.md if a run says that it is damaged.",
            )
        return None

    def _check_namespace(self, statement: Parsed) -> None:
        if statement.namespace is None:
            return
        catalog, name = self._named((*statement.namespace, ""))
        for managed in managed_tables(self.project).values():
            if managed.table.catalog == catalog and managed.table.name.lower().startswith(name):
                raise self._refused("DropNamespace", managed, "DropTable")

    def _check_procedure(self, statement: Parsed) -> None:
        if statement.procedure is None:
            return
        procedure = statement.procedure[-1].lower()
        managed = managed_tables(self.project)
        for parts in statement.named:
            name = self._named_of_procedure(statement.procedure, parts)
            table = managed.get(name)
            if table is None:
                continue
            if procedure not in _PROCEDURES or (table.kind is not None and procedure not in _FOR_SIDES):
                raise self._refused(f"procedure {procedure}", table, procedure)
        texts = [text for text in statement.texts if text.upper() not in _MISMATCHES]
        if procedure == "remove_orphan_files" and len(texts) > 1:
            raise SqlRefused(
                f'procedure {procedure} with "{texts[-1]}"',
                "Files of other tables that lie there would be removed with the table's own orphans.",
                "Leave `location` and `file_list_view` out: it looks through the table's own folder then.",
            )

    def _named_of_procedure(self, procedure: Name, parts: Name) -> tuple[str, str]:
        """Return catalog and lowercase name of a table as a procedure finds it: first in its own catalog."""
        if len(parts) > 1 and _SELECTED.match(parts[-1]):
            parts = parts[:-1]  # procedures change the whole table, whatever of it is named
        where = procedure[0] if procedure[0] in self.project.catalogs() else self.catalog
        is_elsewhere = where != self.catalog and not (parts[0] in self.project.catalogs() and len(parts) > 1)
        return (where, ".".join(parts).lower()) if is_elsewhere else self._named(parts)

    def _named(self, parts: Name) -> tuple[str, str]:
        """Return catalog and lowercase name of a table that a statement names."""
        if len(parts) > 1 and parts[-1].lower() == "branch_main":
            parts = parts[:-1]  # another name of what everybody reads
        if parts[0] in self.project.catalogs() and len(parts) > 1:
            return parts[0], ".".join(parts[1:]).lower()
        if len(parts) == 1:
            parts = (*self.namespace, *parts)
        return self.catalog, ".".join(parts).lower()

    def _refused(self, kind: str, table: Managed, reason: str) -> SqlRefused:
        remedy = _REMEDIES.get(
            reason, "Change the pipeline in the project file; esker plan shows what follows."
        )
        return SqlRefused(
            f'{kind} on table "{table.table}"',
            f'Pipeline "{table.pipeline}" counts on this table: its ledger, its change log or its columns '
            "would no longer fit its rows.",
            remedy.replace("{table}", str(table.table)),
        )


_SELECTED = re.compile(r"(?:branch|tag|snapshot_id|at_timestamp)_")
"""How a part begins that Iceberg takes for what of a table is meant."""
_MISMATCHES = ("ERROR", "IGNORE", "DELETE")
"""What remove_orphan_files may be told to do with addresses that are written in another way."""

_FOR_SIDES = ("expire_snapshots", "ancestors_of", "compute_table_stats")
"""Each changeset's rows lie in files of their own: even a compaction of a change log would break that."""


def _only_looks(statement: Parsed) -> bool:
    return statement.kind.startswith(("Describe", "Show")) or statement.kind in (
        *("RefreshTable", "UncacheTable", "ExplainCommand"),
    )
