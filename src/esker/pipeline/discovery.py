"""Find the tables that families stand for: the database is asked, and each table has its own pipeline.

What is wrong with one table, or with one family, does not keep the others from running.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from esker.errors import (
    EskerError,
    StateError,
    TablesCollide,
    TablesMissing,
    TableUnsuitable,
    Unexpected,
    UnknownPipeline,
)
from esker.ledger.found_tables import remember_tables, remembered_tables
from esker.ledger.run_id import new_run_id
from esker.ledger.runs import record_end, record_start
from esker.ledger.state import State
from esker.pipeline.families import suitable
from esker.pipeline.result import RunResult
from esker.pipeline.run import Start
from esker.project import Project
from esker.project.families import Family, Member, SourceTable
from esker.project.secrets import redact
from esker.project.sources import JdbcSource
from esker.project.suggest import closest
from esker.sources.jdbc.catalogue import Catalogue, read_catalogue


@dataclass(frozen=True)
class Unsuited:
    """A table that cannot be loaded as it is declared."""

    pipeline: str
    target: str
    error: EskerError


@dataclass(frozen=True)
class Discovered:
    """The tables of a family, as they are now."""

    family: Family
    names: Sequence[str]
    """Pipelines that can run."""
    unsuited: Sequence[Unsuited]
    """Why others cannot."""
    gone: Sequence[SourceTable] = ()
    """Found before and no longer there. Their Iceberg tables stay as they are."""

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(
            f"{table} is no longer in the database; table {self.family.target_of(table)} stays as it is"
            for table in self.gone
        )

    def of(self, wanted: str) -> Discovered:
        """Return one pipeline of it. Raises UnknownPipeline, or TablesMissing when its table is gone."""
        if wanted == self.family.name:
            return self
        known = [*self.names, *(each.pipeline for each in self.unsuited)]
        if gone := [str(table) for table in self.gone if self.family.name_of(table) == wanted]:
            raise TablesMissing(self.family.base.source.reads, gone, known)
        if wanted not in known:
            raise UnknownPipeline(wanted, known, closest(wanted, known))
        return replace(
            self,
            names=[name for name in self.names if name == wanted],
            unsuited=[each for each in self.unsuited if each.pipeline == wanted],
        )


def discover(project: Project, start: Start, state: State, family: Family) -> Discovered:
    """Ask the database for a family's tables, and give the project their pipelines.

    Raises SourceUnavailable, SourceRefused, and TablesMissing for what is written and matches nothing.
    """
    source = family.base.source
    assert isinstance(source, JdbcSource)
    catalogue = read_catalogue(start(), source)
    before = remembered_tables(state, project.state_key, family.name)
    found = [table for table in catalogue.tables if family.holds(table, catalogue.default_schema)]
    _check(family, source, catalogue, found, before)
    # One that another has taken the place of is not gone: the ledger says that the source is another.
    there = {family.name_of(table) for table in found}
    gone = [
        table
        for table in before
        if family.name_of(table) not in there and family.holds(table, catalogue.default_schema)
    ]
    remember_tables(state, project.state_key, family.name, found, gone)
    members: list[Member] = []
    unsuited: list[Unsuited] = []
    for table in found:
        try:
            members.append(family.member(table))
        except TableUnsuitable as error:
            unsuited.append(Unsuited(error.pipeline, family.target_of(table), error))
    colliding = _collisions(members)
    members = [member for member in members if all(member.name != each.pipeline for each in colliding)]
    # Those that are gone can still be looked at: what is held or in quarantine has not gone with them.
    project.join(family, [*suitable(family, gone), *members])
    return Discovered(family, [member.name for member in members], [*unsuited, *colliding], gone)


def _check(
    family: Family,
    source: JdbcSource,
    catalogue: Catalogue,
    found: Sequence[SourceTable],
    before: Sequence[SourceTable],
) -> None:
    """Raise TablesMissing for what matches no table now and has matched none before."""
    unmatched = list(family.unmatched([*catalogue.tables, *before], catalogue.default_schema))
    if not unmatched and not found:
        # All at once: somebody took away the rights, or it is another database.
        unmatched = list(family.tables)
    if unmatched:
        raise TablesMissing(source.reads, unmatched, [str(table) for table in catalogue.tables])


def _collisions(members: Sequence[Member]) -> list[Unsuited]:
    """Return pipelines that would load into one table, or be one."""
    shared: dict[str, list[Member]] = {}
    for member in members:
        shared.setdefault(f'pipeline "{member.name}"', []).append(member)
        # Catalogs differ in whether case counts.
        shared.setdefault(f'table "{member.pipeline.table.lower()}"', []).append(member)
    found: dict[str, Unsuited] = {}
    for what, together in shared.items():
        for member in together if len(together) > 1 else ():
            error = TablesCollide(what, [str(each.table) for each in together])
            found[member.name] = Unsuited(member.name, member.pipeline.table, error)
    return list(found.values())


@dataclass
class Gathered:
    """What is to run, and what cannot."""

    names: list[str] = field(default_factory=list)
    results: list[RunResult] = field(default_factory=list)
    """Of families that could not be asked, or have something to tell, and of tables that cannot be loaded."""


def gather(project: Project, start: Start, state: State, wanted: Sequence[str]) -> Gathered:
    """Return pipelines by name, for each family those of its tables. Errors are in the results."""
    gathered = Gathered()
    asked: dict[str, Discovered | None] = {}
    for name in wanted:
        family = project.family_of(name)
        if family is None:
            gathered.names.append(name)
            continue
        if family.name not in asked:
            result, asked[family.name] = _recorded(project, start, state, family)
            if result.error is not None or result.notes:
                gathered.results.append(result)
        discovered = asked[family.name]
        if discovered is not None:
            chosen = discovered.of(name)
            gathered.names += [each for each in chosen.names if each not in gathered.names]
            gathered.results += [_failed(project, state, each) for each in chosen.unsuited]
    return gathered


def _failed(project: Project, state: State, unsuited: Unsuited) -> RunResult:
    """Return, and write down, that a table's pipeline could not even begin."""
    result = RunResult(unsuited.pipeline, new_run_id(), "failed", unsuited.target, error=unsuited.error)
    with suppress(StateError):
        record_start(state, project.state_key, result.pipeline, result.run_id)
        record_end(state, result.run_id, "failed", result.as_json(), unsuited.error.as_json())
    return result


def _recorded(
    project: Project, start: Start, state: State, family: Family
) -> tuple[RunResult, Discovered | None]:
    """Ask for a family's tables, and write down how that went, like a run."""
    result = RunResult(family.name, new_run_id(), "succeeded", family.template)
    discovered: Discovered | None = None
    try:
        record_start(state, project.state_key, family.name, result.run_id)
    except StateError as error:
        return replace(result, status="failed", error=error), None
    try:
        discovered = discover(project, start, state, family)
        result = replace(result, notes=discovered.notes)
    except EskerError as error:
        result = replace(result, status="failed", error=error)
    except Exception as error:
        result = replace(result, status="failed", error=Unexpected.reported(error, redact))
    error_json = result.error.as_json() if result.error else None
    try:
        record_end(state, result.run_id, result.status, result.as_json(), error_json)
    except StateError as error:
        result = replace(result, notes=(*result.notes, f"not in the history: {error.reason}"))
    return result, discovered
