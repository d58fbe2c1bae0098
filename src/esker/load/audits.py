"""Audits: what must hold for the whole table as it will be, before anybody sees it.

A batch is staged on a branch of the table first. The audits look at that snapshot; if they pass, the very
same snapshot is published. If others have rewritten files meanwhile (a compaction), the table's rows are the
same, and the batch is published on top of them; after any other commit it is made and audited again. If an
audit does not pass, the branch stays for people to look at, and the batch is held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, NullType, NumericType, StringType

from esker.engine.cleanup import cleaning_up
from esker.engine.compat import snapshot_frame
from esker.engine.current_catalog import current_catalog
from esker.engine.failures import SQL_MISTAKES, explained, said_of_sql
from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.rounds import rounds
from esker.engine.iceberg.table import TableId, find_snapshot_at
from esker.engine.iceberg.table_metadata import STAGED
from esker.engine.session import Engine
from esker.errors import Held, InvalidRule, Tripped
from esker.ledger.quality import Measure
from esker.load.counts import RowCounts
from esker.load.guards import Approved
from esker.load.publish import Change, Commit, Made, staging_branch
from esker.project.contract.model import Audit
from esker.project.types import Column, ddl, quoted

DRAFT = "draft"
"""What a batch trips whose contract nobody has released."""
Note = Callable[[Sequence[Measure], SnapshotId, int], None]
"""Takes down what was found of a snapshot that is not published, and the changeset it would have been."""
_WEEK = timedelta(days=7)
_TRIES = 10
_QUERY = (
    "It is a query of Spark SQL that gives one number; {table} stands for the table as it will be, and names "
    "without a catalog are of its own."
)


@dataclass(frozen=True)
class Audited:
    """What an audit found."""

    audit: Audit
    value: float | None
    """None where there is nothing to compare with."""

    @property
    def is_passed(self) -> bool:
        if self.value is None:
            # A first batch has nothing to be compared with; of others a number is wanted.
            return self.audit.metric == "row_count_change"
        return math.isfinite(self.value) and self.audit.bound.admits(self.value)

    def is_worse(self, seen: int) -> bool:
        """Tell whether it is further from what it must be than a figure that a person has seen."""
        return self.audit.bound.is_further(self.figure, seen)

    @property
    def figure(self) -> int:
        return round(self.value) if self.value is not None and math.isfinite(self.value) else 0

    def __str__(self) -> str:
        shown = f"{self.value:,.6g}" if self.value is not None else "no number"
        return f'"{self.audit.name}" is {shown}, and {self.audit.bound}'


@dataclass
class Audits:
    """The audits of one pipeline."""

    engine: Engine
    table: TableId
    audits: Sequence[Audit] = ()
    is_draft: bool = False
    """Nobody has released the contract yet: every batch is for a person to look at."""
    warned: dict[str, None] = field(default_factory=dict)
    """What audits of severity warning found, in words."""
    measures: list[Measure] = field(default_factory=list)
    """What the last check found, for the quality history."""

    @property
    def is_needed(self) -> bool:
        return bool(self.audits) or self.is_draft

    def check(
        self, staged: SnapshotId, before: SnapshotId | None, now: datetime, approved: Approved
    ) -> list[Tripped]:
        """Return what is wrong with a staged snapshot, if anything is that nobody has approved."""
        tripped = []
        is_approved = not self.is_draft or DRAFT in approved
        self.measures = []
        if self.is_draft:
            tripped.append(Tripped(DRAFT, 1, 0, "its contract is a draft"))
        for audit in self.audits:
            found = Audited(audit, self._value(audit, staged, before, now))
            self.measures.append(Measure(audit.name, "audit", found.value, found.is_passed))
            if found.is_passed:
                continue
            if audit.severity == "warning":
                self.warned[f"audit {found}"] = None
            else:
                guard = f"audit {audit.name}"
                tripped.append(Tripped(guard, found.figure, found.figure, f"audit {found}"))
                is_approved &= guard in approved and not found.is_worse(approved[guard])
        return [] if is_approved else tripped

    def _value(
        self, audit: Audit, staged: SnapshotId, before: SnapshotId | None, now: datetime
    ) -> float | None:
        with explained(f'cannot check the rule "{audit.name}"', self.engine.log):
            match audit.metric:
                case "row_count":
                    return float(self._rows(staged).count())
                case "row_count_change":
                    earlier = before
                    if audit.against == "weekday":
                        earlier = find_snapshot_at(self.engine, self.table, now - _WEEK)
                    old = self._rows(earlier).count() if earlier is not None else 0
                    return 100 * (self._rows(staged).count() - old) / old if old else None
                case "freshness":
                    assert audit.column is not None
                    newest = F.max(F.col(quoted(audit.column)).cast("timestamp"))
                    age = F.unix_micros(F.lit(now)) - F.unix_micros(newest)
                    return _number(self._rows(staged).agg(age / 60_000_000))
                case "sql":
                    with _asked(self.engine, audit, self._rows(staged), self.table) as answer:
                        return _number(answer)

    def _rows(self, snapshot: SnapshotId) -> DataFrame:
        return snapshot_frame(self.engine.spark, self.table.sql, snapshot)


def check_audits(
    engine: Engine, audits: Sequence[Audit], columns: tuple[Column, ...], table: TableId
) -> None:
    """Raise InvalidRule for a query that Spark cannot take for a table with these columns.

    One that names a table which is not there yet is left for the run.
    """
    queries = [audit for audit in audits if audit.metric == "sql"]
    if not queries:
        return
    rows = engine.spark.range(0).selectExpr(
        *(f"CAST(NULL AS {ddl(column.type)}) AS {quoted(column.name)}" for column in columns)
    )
    for audit in queries:
        with explained(f'cannot check the rule "{audit.name}"', engine.log):
            try:
                _check_query(engine, audit, rows, table)
            except InvalidRule as error:
                if not _lacks_table(error.__cause__):
                    raise


def _check_query(engine: Engine, audit: Audit, rows: DataFrame, table: TableId) -> None:
    with _asked(engine, audit, rows, table) as answer:
        kind = answer.schema.fields[0].dataType
        if not isinstance(kind, NumericType | NullType | BooleanType | StringType):
            why = f"it gives {kind.simpleString()}, and not a number"
            raise InvalidRule(audit.place, audit.name, why, _QUERY)


def _lacks_table(error: BaseException | None) -> bool:
    # Spark 3.5 and 4.1 have other methods to ask for that.
    return "[TABLE_OR_VIEW_NOT_FOUND]" in str(error)


@contextmanager
def _asked(engine: Engine, audit: Audit, rows: DataFrame, table: TableId) -> Iterator[DataFrame]:
    """Give the answer of an audit's query, with `rows` as its table; names without a catalog are of the
    table's. Raises InvalidRule, also for what goes wrong while the answer is read."""
    assert audit.query is not None
    view = f"esker_staged_{uuid4().hex}"
    rows.createOrReplaceTempView(view)
    with cleaning_up(lambda: engine.spark.catalog.dropTempView(view)):
        try:
            # In brackets: what is no query does not stand there, and nothing else is ever run.
            query = audit.query.replace("{table}", view).rstrip().rstrip(";")
            with current_catalog(engine, table.catalog):
                answer = engine.spark.sql(f"SELECT * FROM (\n{query}\n) AS esker_audit")
            yield answer
        except SQL_MISTAKES as error:
            why = said_of_sql(error).replace(f"`{view}`.", "").replace(view, "{table}")
            raise InvalidRule(audit.place, audit.name, why, _QUERY) from error


@dataclass
class AuditedChange(Change):
    """A batch that is staged on a branch and looked at, and published as it was looked at."""

    change: Change
    audits: Audits
    pipeline: str
    run: str
    approved: Approved
    note: Note
    _staged: _Staged | None = None

    @property
    def columns(self) -> tuple[str, int]:
        return self.change.columns

    @property
    def reads_again(self) -> bool:
        return self.change.reads_again

    @property
    def times_read(self) -> int:
        return self.change.times_read

    def first_attempt(self) -> Attempt | None:
        return self.change.first_attempt()

    def release(self) -> None:
        self.change.release()

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        """Return the staged snapshot, ready to be published. Raises Held when an audit fails.

        Staging moves the table's metadata: SwapFailed then asks for a new attempt at it.
        """
        branch = staging_branch(self.pipeline)
        staged = self._staged
        if staged is not None and staged.is_on(attempt, branch, changeset):
            return self._passed(staged.made, lambda attempt, summary: attempt.publish_branch(branch))
        made = self.change.make(attempt, changeset)
        if isinstance(made, RowCounts):
            return made
        if staged is not None and staged.is_of_same_rows(attempt, made, changeset, self.times_read):
            snapshot = staged.snapshot

            def commit(attempt: Attempt, summary: Mapping[str, str]) -> tuple[SnapshotId, int]:
                attempt.drop_branch(branch)
                attempt.forget(snapshot)
                return made.commit(attempt, summary)

            return self._passed(made, commit)
        self._stage(attempt, branch, made, changeset)
        raise SwapFailed("Staged", "the batch is staged; the table is read again to publish it")

    def _passed(self, made: Made, commit: Commit) -> Made:
        """Return a batch that the audits let pass, with what they measured."""
        return replace(made, commit=commit, measures=(*made.measures, *self.audits.measures))

    def _stage(self, attempt: Attempt, branch: str, made: Made, changeset: int) -> None:
        staging = Attempt(self.audits.engine, self.audits.table)
        if staging.version != attempt.version:
            raise SwapFailed("CommitFailedException", "the table moved while the batch was made")
        before = staging.head_of(branch)
        staging.stage_on(branch)
        if before is not None and before.summary.get("esker.run") == self.run:
            staging.forget(before.id)
        summary = {"esker.pipeline": self.pipeline, "esker.run": self.run, STAGED: branch, **made.told}
        if made.is_change:
            summary["esker.changeset"] = str(changeset)
        snapshot, _ = made.commit(staging, summary)
        staging.swap()
        tripped = self.audits.check(snapshot, attempt.current, datetime.now(UTC), self.approved)
        if tripped:
            self.note((*made.measures, *self.audits.measures), snapshot, changeset)
            raise Held(self.pipeline, str(self.audits.table), tripped, branch)
        self._staged = _Staged(made, snapshot, attempt.current, attempt.sequence, changeset, self.times_read)


@dataclass(frozen=True)
class _Staged:
    """A batch on the branch."""

    made: Made
    snapshot: SnapshotId
    parent: SnapshotId | None
    sequence: int
    """That of the parent."""
    changeset: int
    times_read: int

    def is_on(self, attempt: Attempt, branch: str, changeset: int) -> bool:
        """Tell whether the branch still holds it, and main has not moved since."""
        head = attempt.head_of(branch)
        is_there = head is not None and head.id == self.snapshot
        return is_there and attempt.current == self.parent and changeset == self.changeset

    def is_of_same_rows(self, attempt: Attempt, made: Made, changeset: int, times_read: int) -> bool:
        """Tell whether a batch, made again for an attempt, gives the table the rows that were looked at.

        That is so when others have only rewritten files since: a compaction carries rows over as they are.
        Not when the source was read again, which may give other rows.
        """
        if self.parent is None or changeset != self.changeset or made.counts != self.made.counts:
            return False
        if times_read != self.times_read:
            return False
        since = attempt.history(self.parent, self.sequence)
        is_rewritten = all(snapshot.operation == "replace" for snapshot in since.newer)
        return since.descends is True and is_rewritten


def drop_staged(engine: Engine, table: TableId, pipeline: str) -> None:
    """Remove the branch with a batch that was held, if there is one."""
    branch = staging_branch(pipeline)
    for may_try in rounds(_TRIES):
        attempt = Attempt(engine, table)
        if not may_try or not attempt.drop_branch(branch):
            return
        with suppress(SwapFailed):
            attempt.swap()


def _number(frame: DataFrame) -> float | None:
    """Return the one value that a query gives."""
    row: Any = frame.first()
    try:
        return None if row is None or row[0] is None else float(row[0])
    except (TypeError, ValueError):
        return None  # a date or a text: told as no number
