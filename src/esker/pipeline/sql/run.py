"""Run SQL statements on a project's catalogs: what they write to a pipeline's table goes to its loader."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from esker.engine.current_catalog import current_catalog
from esker.engine.failures import SQL_MISTAKES, explained, place_of, said_of_sql
from esker.engine.iceberg.table import load
from esker.engine.session import Engine
from esker.engine.sql_parser import parts_of
from esker.engine.statement import Parsed, RowsOf, Target, parse
from esker.errors import CatalogUnreachable, PipelineBusy, SqlInvalid, SqlRefused
from esker.events import Listener, silent
from esker.ledger.state import State
from esker.pipeline.result import RunResult
from esker.pipeline.run import run_pipeline
from esker.pipeline.sql.guard import Guard, Managed
from esker.pipeline.sql.script import Statement, statements
from esker.project import Project
from esker.project.reserved import is_own
from esker.project.secrets import masked
from esker.project.types import quoted
from esker.sources.statement import MARK, StatementRows

_ONE_ROW = ("upsert", "insert_only", "sync", "replace")
"""Modes with a key whose tables hold one row of each: a statement can change it."""
_SECRET = re.compile(r"secret|password|token|credential|access.?key", re.IGNORECASE)


@dataclass(frozen=True)
class Shown:
    """Some rows of an answer, secrets masked."""

    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    is_cut: bool
    """There are more."""


@dataclass(frozen=True)
class Answer:
    """What one statement gave back: rows, or a run of the pipeline whose table it wrote to."""

    statement: Statement
    log: Path
    """Where Spark tells everything."""
    frame: DataFrame | None = field(default=None, repr=False)
    run: RunResult | None = None

    def show(self, limit: int = 100) -> Shown:
        """Return the first rows. Raises what Spark meets on the way as SparkFailed or SqlInvalid."""
        if self.frame is None or not self.frame.columns:
            return Shown((), (), is_cut=False)
        with explained("the statement failed", self.log), _said_by_spark(self.statement):
            found = self.frame.limit(limit + 1).collect()
        names = _distinct(self.frame.columns)
        rows = [dict(zip(names, (_plain(value) for value in row), strict=True)) for row in found[:limit]]
        return Shown(tuple(names), tuple(masked(_without_secrets(row)) for row in rows), len(found) > limit)

    def as_json(self, limit: int) -> dict[str, Any]:
        document: dict[str, Any] = {"statement": masked(self.statement.text)}
        if self.run is not None:
            return document | {"run": self.run.as_json()}
        shown = self.show(limit)
        return document | {"columns": list(shown.columns), "rows": list(shown.rows), "more": shown.is_cut}


@dataclass(frozen=True)
class Session:
    """Runs statements one after the other. `USE` and temporary views hold until the text ends."""

    engine: Engine
    state: State
    listen: Listener = silent

    @property
    def project(self) -> Project:
        return self.engine.project

    def answers(self, text: str) -> Iterator[Answer]:
        """Run the statements of a text, each when its answer is asked for.

        All are parsed first: a mistake in the last one is found before the first one runs. Raises SqlInvalid,
        SqlRefused, and the errors of a run.
        """
        found = statements(text)
        if not found:
            raise SqlInvalid("there is no statement", 1, 1, "", "The text is empty, or holds only comments.")
        with self._names():
            for statement in found:
                self._parsed(statement)
            for statement in found:
                yield self._answer(statement)

    def _parsed(self, statement: Statement) -> Parsed:
        with explained("the statement cannot be parsed", self.engine.log), _said_by_spark(statement):
            return parse(self.engine, statement.text)

    def _answer(self, statement: Statement) -> Answer:
        parsed = self._parsed(statement)
        spark = self.engine.spark
        namespace = parts_of(spark, spark.catalog.currentDatabase())
        guard = Guard(self.project, spark.catalog.currentCatalog(), namespace)
        with explained("the statement failed", self.engine.log), _said_by_spark(statement):
            target = guard.target(parsed)
        if target is not None:
            return Answer(statement, self.engine.log, run=self._write(statement, parsed, target))
        with explained("the statement failed", self.engine.log), _said_by_spark(statement):
            return Answer(statement, self.engine.log, frame=self.engine.spark.sql(statement.text))

    def _write(self, statement: Statement, parsed: Parsed, target: Managed) -> RunResult:
        pipeline = self.project.pipeline(target.pipeline)
        if pipeline.is_keyed and pipeline.mode not in _ONE_ROW:
            raise SqlRefused(
                f'{_VERBS[parsed.kind]} on table "{target.table}"',
                f"The table is loaded with mode {pipeline.mode}: a key has several rows there, which belong "
                "together.",
                "Correct the rows in the source and load them again, or load them with mode: upsert.",
            )
        writing = _Writing(self.engine, statement, parsed, target)
        only_adds = parsed.kind == "InsertIntoStatement"
        source = StatementRows(writing.evaluate, only_adds)
        result = run_pipeline(
            self.project, lambda: self.engine, self.state, target.pipeline, self.listen, source
        )
        if result.error is not None:
            raise result.error
        if result.status == "skipped":
            raise PipelineBusy(target.pipeline, ", ".join(result.notes).partition(": ")[2])
        return result

    @contextmanager
    def _names(self) -> Iterator[None]:
        """Let names without a catalog mean the project's own, and leave the session as it was."""
        own = self.project.catalog_name(None)
        self.engine.open_catalog(own)
        for name in self.project.catalogs():
            # One that does not answer is only missed by statements that name it.
            with suppress(CatalogUnreachable):
                self.engine.open_catalog(name)
        with current_catalog(self.engine, own):
            yield


@dataclass(frozen=True)
class _Writing:
    """Finds the rows that a statement writes to a pipeline's table."""

    engine: Engine
    statement: Statement
    parsed: Parsed
    target: Managed

    def evaluate(self) -> tuple[DataFrame, int | None]:
        """Return the rows, with MARK, and the snapshot that they were found on."""
        table = load(self.engine, self.target.table)
        with explained("the statement failed", self.engine.log), _said_by_spark(self.statement):
            try:
                writes = RowsOf(self.engine, self.parsed, self._as_target, MARK).writes()
            except LookupError as error:
                raise self._refused(str(error.args[0])) from error
            if writes.moved is not None and writes.moved.limit(1).count():
                raise self._refused("it gives rows another key: DELETE them and INSERT others")
            if writes.ambiguous is not None and writes.ambiguous.limit(1).count():
                raise self._refused("several rows of the source match one row of the table")
            return writes.frame, table.snapshot.id if table.snapshot is not None else None

    @cached_property
    def _as_target(self) -> Target:
        pipeline = self.engine.project.pipeline(self.target.pipeline)
        stored = self.engine.spark.read.table(self.target.table.sql).schema.fields
        columns = tuple((field.name, field.dataType) for field in stored if not is_own(field.name))
        marks = [name for name, _ in columns if name.lower() == pipeline.deleted_column.lower()]
        live = None
        if pipeline.keeps_deleted and marks:
            live = f"NOT coalesce({quoted(marks[0])}, false)"
        return Target(self.target.table.sql, columns, tuple(pipeline.key) if pipeline.is_keyed else (), live)

    def _refused(self, why: str) -> SqlRefused:
        return SqlRefused(
            f'{_VERBS[self.parsed.kind]} on table "{self.target.table}"',
            f"As it stands, {why}.",
            "Change the statement. Nothing was written.",
        )


_VERBS = {
    "InsertIntoStatement": "INSERT",
    "UpdateTable": "UPDATE",
    "DeleteFromTable": "DELETE",
    "MergeIntoTable": "MERGE",
}


@contextmanager
def _said_by_spark(statement: Statement) -> Iterator[None]:
    """Raise what Spark says of a statement as SqlInvalid, with its place in the text."""
    try:
        yield
    except SQL_MISTAKES as error:
        line, column = place_of(error) or (1, 1)
        shown = statement.text.splitlines()[line - 1] if line <= statement.text.count("\n") + 1 else ""
        if line == 1:
            shown = " " * (statement.column - 1) + shown
            column += statement.column - 1
        raise SqlInvalid(
            "the statement is not understood", statement.line + line - 1, column, shown, said_of_sql(error)
        ) from error


def _distinct(names: list[str]) -> list[str]:
    """Return names of which each stands once: a query may name two columns alike."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return distinct


def _plain(value: Any) -> Any:
    """Return a value of a row as plain Python: structs as dictionaries."""
    if hasattr(value, "asDict"):
        return {name: _plain(inner) for name, inner in value.asDict().items()}
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def _without_secrets(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of settings with those masked whose name tells of a secret."""
    name = row.get("key")
    if isinstance(name, str) and "value" in row and _SECRET.search(name):
        return {**row, "value": "********"}
    return row
