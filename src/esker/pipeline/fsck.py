"""Look at the project's tables for damage, and repair what can be repaired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from esker.engine.iceberg.table import TableId, list_tables
from esker.engine.session import Engine
from esker.errors import EskerError, NothingToRestore, PipelineBusy, RepairRefused, TableNotFound
from esker.ledger.leases import LeaseTaken, held
from esker.ledger.run_id import new_run_id
from esker.ledger.side_table import LOG, SideTable
from esker.ledger.state import State
from esker.load.adoption import TakeOver, take_over
from esker.pipeline.tables import log_of, own_tables, table_of
from esker.recover.bookkeeping import LOG_AHEAD, Bookkeeping
from esker.recover.bounds import BOUNDS, CorrectBounds
from esker.recover.finding import Examined
from esker.recover.fsck import COPY, METADATA, examine, with_bookkeeping
from esker.recover.records import RECORDS, Reappend, pending, with_pending, with_records
from esker.recover.repair import Restore, Rewrite, behind_log, plan_restore, with_gap


@dataclass(frozen=True)
class Group:
    """A table, the tables beside it, and the pipelines that write them."""

    table: Examined
    beside: tuple[Examined, ...] = ()
    pipelines: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[Examined, ...]:
        """All that are in the catalog, or should be."""
        return tuple(each for each in (self.table, *self.beside) if each.is_there)

    @property
    def by_name(self) -> dict[str, Examined]:
        return {each.table.name: each for each in self.beside}


@dataclass(frozen=True)
class Renumber:
    """A commit after which changesets are numbered on behind those of the change log, with a gap."""

    table: TableId
    pipeline: str
    logged: int
    log: SideTable | None
    notes: tuple[str, ...] = ("the change log gets a gap: consumers must read the table anew",)

    def as_json(self) -> dict[str, Any]:
        return {
            "table": str(self.table),
            "repair": "renumber",
            "after": self.logged,
            "notes": list(self.notes),
        }

    def apply(self, engine: Engine) -> None:
        """Do it. Raises PublishConflict."""
        source = engine.project.pipeline(self.pipeline).source.fingerprint
        take_over(engine, TakeOver(self.table, self.pipeline, source, new_run_id(), self.logged, self.log))


Repair = Restore | Rewrite | Renumber | Reappend | CorrectBounds


@dataclass(frozen=True)
class Fsck:
    """What was found in tables."""

    groups: tuple[Group, ...] = field(default=(), repr=False)

    @property
    def tables(self) -> list[Examined]:
        return [each for group in self.groups for each in group.tables]

    @property
    def is_clean(self) -> bool:
        return not any(each.is_damaged for each in self.tables)

    def as_json(self) -> dict[str, Any]:
        return {
            "status": "succeeded" if self.is_clean else "failed",
            "tables": [each.as_json() for each in self.tables],
        }


def fsck(engine: Engine, tables: Sequence[TableId] = (), *, deep: bool = False) -> Fsck:
    """Look at tables and the system tables beside them, or at all of the project. Nothing is changed.

    Raises TableNotFound for one that is named and not there, CatalogUnreachable and StoreUnreachable.
    """
    declared = _declared(engine)
    groups = []
    for table in dict.fromkeys(_home(engine, declared, table) for table in tables) if tables else declared:
        engine.open_catalog(table.catalog)
        group = _looked_at(engine, table, tuple(declared.get(table, ())), deep=deep)
        if tables and not group.tables:
            raise TableNotFound(str(table), list_tables(engine, table.catalog))
        groups.append(group)
    return Fsck(tuple(groups))


def plan_repairs(engine: Engine, found: Fsck) -> Iterator[Repair]:
    """Yield what would repair the damage that was found, as far as anything can. Nothing is changed.

    Tables beside a table come first: how it is repaired depends on them. But where it cannot be read itself,
    those that are filled from its outbox wait for it. Look again after each repair. In the end, raises
    NothingToRestore or RepairRefused for the first table that cannot be repaired.
    """
    failure: EskerError | None = None
    for group in found.groups:
        for each in (*group.beside, group.table):
            try:
                if (plan := _plan(engine, group, each)) is not None:
                    yield plan
            except (NothingToRestore, RepairRefused) as error:
                failure = failure or error
    if failure is not None:
        raise failure


def apply_repair(engine: Engine, state: State, found: Fsck, repair: Repair) -> None:
    """Do what a plan says, while no pipeline of the table runs.

    Raises PipelineBusy, RepairOutdated, RepairRefused and PublishConflict.
    """
    project = engine.project
    names = {
        name
        for group in found.groups
        if repair.table in (each.table for each in (group.table, *group.beside))
        for name in group.pipelines
    }
    with ExitStack() as leases:
        for name in sorted(names):
            try:
                leases.enter_context(held(state, f"{project.state_key}/{name}"))
            except LeaseTaken as taken:
                raise PipelineBusy(name, taken.holder) from None
        repair.apply(engine)


def _declared(engine: Engine) -> dict[TableId, list[str]]:
    """Return the tables of the project's pipelines, each with those that write it."""
    found: dict[TableId, list[str]] = {}
    for name, pipeline in engine.project.pipelines.items():
        found.setdefault(table_of(engine.project, pipeline), []).append(name)
    return found


def _home(engine: Engine, declared: Iterable[TableId], table: TableId) -> TableId:
    """Return the table that one of Esker's own belongs to; any other one itself."""
    for each in declared:
        if any(own.table == table for own in own_tables(engine.project, each)):
            return each
    return table


def _looked_at(engine: Engine, table: TableId, pipelines: tuple[str, ...], *, deep: bool) -> Group:
    own = examine(engine, table, deep=deep)
    if not pipelines:
        return Group(own)
    beside = tuple(
        with_pending(examine(engine, each.table, deep=deep)) for each in own_tables(engine.project, table)
    )
    group = Group(own, beside, pipelines)
    return Group(with_bookkeeping(engine, own, group.by_name), beside, pipelines)


def _plan(engine: Engine, group: Group, each: Examined) -> Repair | None:
    checks = {finding.check for finding in each.findings}
    if METADATA in checks and each.pointer is None:
        refused = each.findings[0]
        raise RepairRefused(str(each.table), f"{refused.what}. {refused.meaning}", refused.remedy)
    if METADATA in checks and each.document is None:
        return None if _waits(engine, group, each) else _restore(engine, group, each)
    if COPY in checks and each.pointer is not None:
        return Rewrite(each.table, each.pointer)
    if RECORDS in checks:
        return pending(each)
    if BOUNDS in checks:
        return CorrectBounds(each.table, each.corrections)
    if LOG_AHEAD in checks and group.pipelines:
        return _renumber(engine, group)
    return None


def _waits(engine: Engine, group: Group, damaged: Examined) -> bool:
    """Tell whether only the table that a table stands beside can say what it lacks, and cannot be read."""
    own = own_tables(engine.project, group.table.table)
    is_filled = any(each.kind.is_filled for each in own if each.table == damaged.table)
    return is_filled and group.table.is_there and group.table.document is None


def _restore(engine: Engine, group: Group, damaged: Examined) -> Restore:
    found = plan_restore(engine, damaged)
    log = log_of(engine.project, group.table.table)
    if damaged is group.table:
        if not group.pipelines:
            return found
        beside = group.by_name.get(log.name)
        is_lost = beside is not None and beside.is_there and beside.document is None
        # What a log had told that cannot be read itself, nobody knows: at most a changeset by each commit.
        told = found.previous.versions_lost if is_lost else 0
        return behind_log(engine, found, group.by_name, _log(engine, group), told)
    if damaged.table == log:
        return with_gap(found, group.table) if group.table.document is not None else found
    return with_records(found, group.table)


def _renumber(engine: Engine, group: Group) -> Renumber:
    own = group.table
    logged = Bookkeeping(engine, own.table, own.properties, group.by_name).logged()
    return Renumber(own.table, group.pipelines[0], max(logged.values()), _log(engine, group))


def _log(engine: Engine, group: Group) -> SideTable | None:
    """Return the table's change log, if it can be read."""
    log = log_of(engine.project, group.table.table)
    document = group.by_name[log.name].document if log.name in group.by_name else None
    return SideTable(log, document["table-uuid"], document["location"], LOG) if document else None
