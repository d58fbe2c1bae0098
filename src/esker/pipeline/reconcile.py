"""Compare all that a source holds with the table: what is missing there, what differs, what has vanished.

Runs read what is new. What a source never told (a record that was removed without a word, a change that
bears an old date) only shows when all of it is looked at. Keys and row hashes are compared, not contents, and
nothing is changed until somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from esker.contracts.check import BAD
from esker.contracts.rules import RowRules
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.rows import pinned_rows
from esker.engine.iceberg.table import Table, load
from esker.engine.kept import KeptFrames
from esker.engine.session import Engine
from esker.errors import (
    BackfillUnsuitable,
    Held,
    PartsMissing,
    PipelineBusy,
    ReconcileUnsuitable,
    SourceRefused,
    Tripped,
)
from esker.events import Listener, silent
from esker.ledger.entry import Position
from esker.ledger.state import State
from esker.load.diff import KeyRules
from esker.load.incoming import DELETED, DeleteMark, incoming
from esker.load.modes.keyed import rules_of
from esker.load.row_hash import spark_hash
from esker.pipeline.backfill import backfill
from esker.pipeline.plan import open_reader, typed
from esker.pipeline.result import RunResult
from esker.pipeline.run import Start, run_pipeline
from esker.pipeline.tables import table_of
from esker.project import Pipeline, Project
from esker.project.reserved import HASH_COLUMN, is_own
from esker.project.types import quoted
from esker.sources import Reader, Slice, Span
from esker.sources.statement import MARK, StatementRows
from esker.sources.windows import Coverage

_MODES = ("upsert", "insert_only", "sync")
_EVER = Span(until=datetime(9999, 1, 1, tzinfo=UTC))
"""All windows of a source that is read by time."""
_LOOKS = 5
"""So often, at most, what came while others were read is looked for."""
_SHOWN = 10
_SHARE = 0.1
"""So many of a table's rows may vanish at a time, unless the guard says otherwise."""
_KINDS = ("missing", "different", "vanished")


@dataclass(frozen=True)
class Reconciliation:
    """How a source and a table differ. Counts are of keys, and whole."""

    pipeline: str
    table: str
    source_keys: int
    """Keys that the source has now."""
    table_keys: int
    """Keys that the table has, and not as deleted."""
    missing: int
    """In the source only."""
    different: int
    """In both, with another content, and the source's is not older."""
    vanished: int
    """In the table only, or deleted in the source: not those that runs have yet to bring."""
    examples: Mapping[str, Sequence[str]]
    """Some keys of each kind."""
    repairs: tuple[RunResult, ...] = field(default=())
    """What was done about it."""

    @property
    def is_same(self) -> bool:
        return not (self.missing or self.different or self.vanished)

    def as_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "table": self.table,
            "source_keys": self.source_keys,
            "table_keys": self.table_keys,
            "missing": self.missing,
            "different": self.different,
            "vanished": self.vanished,
            "examples": {kind: list(keys) for kind, keys in self.examples.items()},
            "repairs": [each.as_json() for each in self.repairs],
        }


def reconcile(
    project: Project,
    start: Start,
    state: State,
    name: str,
    listen: Listener = silent,
    *,
    repair: bool = False,
    approved: int | None = None,
) -> Reconciliation:
    """Compare a pipeline's source with its table; with `repair`, make the table like the source.

    What is missing or differs is loaded, what has vanished is deleted. More deletes than the guard allows
    raise Held, unless so many were `approved`. Raises ReconcileUnsuitable, and PartsMissing where not all of
    the source could be read: then nothing can be said to have vanished.
    """
    pipeline = project.pipeline(name)
    if pipeline.mode not in _MODES:
        why = f"Mode {pipeline.mode} keeps no row of a key that could be compared."
        raise ReconcileUnsuitable(name, why)
    engine = start()
    with closing(_Sides(engine, name, pipeline)) as sides:
        found = sides.compared()
        if not repair or found.is_same:
            return found
        work = _Repair(project, start, state, listen, found, sides, approved)
        return work.done()


class _Sides:
    """Keys and hashes of both sides, kept until the work is done."""

    def __init__(self, engine: Engine, name: str, pipeline: Pipeline) -> None:
        self.engine, self.name, self.pipeline = engine, name, pipeline
        self.is_whole = True
        """The source is read at once, and not by windows."""
        self._kept = KeptFrames(engine)
        self._joined: DataFrame | None = None

    def close(self) -> None:
        self._kept.let_go()

    def compared(self) -> Reconciliation:
        table = table_of(self.engine.project, self.pipeline)
        self.engine.open_catalog(table.catalog)
        present = load(self.engine, table)
        rules = self._rules(present)
        if HASH_COLUMN not in {column.name for column in present.columns}:
            raise ReconcileUnsuitable(self.name, "The table has no row hashes: it was never loaded by key.")
        with explained(f'cannot compare table "{table}" with its source', self.engine.log, reads_source=True):
            # Before the source is read, which may take hours: what runs bring meanwhile has not vanished.
            stored = self._kept.keep(_stored(pinned_rows(self.engine, present), rules))
            stored.count()
            source = self._source(present, rules, stored)
            joined = self._joined = self._kept.keep(self._join(source, stored, rules))
            counts = {row["kind"]: row["count"] for row in joined.groupBy("kind").count().collect()}
            examples = {kind: self.keys(kind, _SHOWN) for kind in _KINDS if counts.get(kind)}
        same = counts.get("same", 0)
        missing, different, vanished = (counts.get(kind, 0) for kind in _KINDS)
        both = same + different + counts.get("older", 0)
        return Reconciliation(
            self.name, str(table), both + missing, both + vanished, missing, different, vanished, examples
        )

    def keys(self, kind: str, limit: int | None = None) -> list[str]:
        """Return keys of a kind as texts, in order."""
        assert self._joined is not None
        names = [F.col(quoted(name)).cast("string") for name in self.pipeline.key]
        found = self._joined.where(F.col("kind") == kind).select(F.concat_ws(", ", *names).alias("key"))
        found = found.orderBy("key")
        return [row["key"] for row in (found if limit is None else found.limit(limit)).collect()]

    def doomed(self) -> tuple[DataFrame, int | None]:
        """Return the rows that have vanished, as deletes of a statement, and the snapshot they are of.

        Rows that changed since they were compared are not among them.
        """
        assert self._joined is not None
        present = load(self.engine, table_of(self.engine.project, self.pipeline))
        names = [column.name for column in present.columns if not is_own(column.name)]
        rules = self._rules(present)
        keys = [F.col(quoted(name)) for name in rules.key]
        compared = self._joined.where("kind = 'vanished'").select(*keys, "t_hash", "t_order")
        is_same = F.col(HASH_COLUMN).eqNullSafe(F.col("t_hash")) & _order(rules).eqNullSafe(F.col("t_order"))
        rows = pinned_rows(self.engine, present).join(compared, list(rules.key))
        rows = rows.where(is_same & ~_is_gone(rules))
        frame = rows.select(*(F.col(quoted(name)) for name in names), F.lit(True).alias(MARK))
        return frame, present.snapshot.id if present.snapshot is not None else None

    def confirm(self) -> None:
        """Ask for each record that seems to have vanished. Those that are there have not.

        Raises PartsMissing where the source does not say of one that it is there, or that it is not.
        """
        assert self._joined is not None
        present = load(self.engine, table_of(self.engine.project, self.pipeline))
        rules = self._rules(present)
        keys = [F.col(quoted(name)) for name in rules.key]
        span = Span(ids=tuple(self.keys("vanished")))
        with closing(open_reader(self.engine, self.name, span=span)) as source:
            fetched = source.fetch(source.plan(None))
            unknown = [
                each for each in fetched.failures if not (isinstance(each, SourceRefused) and each.is_gone)
            ]
            if unknown:
                raise PartsMissing(self.name, unknown)
            for piece in fetched.slices:
                found = self._narrow(source, piece, present, rules).where("NOT s_gone").select(*keys)
                there = self._kept.keep(found)
                with explained("cannot read the records", self.engine.log, reads_source=True):
                    there.count()  # they are here no longer than the reader is open
                self._joined = self._joined.join(there, list(rules.key), "left_anti")

    def reader(self) -> Reader:
        """Return a reader of all that the source holds."""
        try:
            return open_reader(self.engine, self.name, span=Span())
        except BackfillUnsuitable:
            self.is_whole = False
        try:
            return open_reader(self.engine, self.name, span=_EVER)
        except BackfillUnsuitable as error:
            raise ReconcileUnsuitable(self.name, error.reason) from error

    def _rules(self, present: Table) -> KeyRules:
        return rules_of(self.pipeline, tuple(each for each in present.columns if not is_own(each.name)))

    def _source(self, present: Table, rules: KeyRules, stored: DataFrame) -> DataFrame:
        """Return the newest state of each key that the source has; `s_late` where a run has yet to see it."""
        parts: list[DataFrame] = []
        position, _ = self._read(self.reader(), present, rules, parts, is_late=False)
        # A record that changes has another date: from a window that is still to be read it goes to one that
        # is too new for a run. Dates only grow, so whoever reads on to this very moment meets it.
        windows = 0 if self.is_whole else 2
        for _ in range(_LOOKS):
            if windows <= 1:
                break
            covered = Coverage.from_json(position).intervals
            span = replace(_EVER, since=covered[-1].until if covered else None, reaches_now=True)
            late = open_reader(self.engine, self.name, span=span)
            position, windows = self._read(late, present, rules, parts, is_late=True)
        keys = [F.col(quoted(name)) for name in rules.key]
        if not parts:
            nothing = stored.where("false").select(*keys)
            return nothing.selectExpr(
                "*", "0L AS s_hash", "true AS s_gone", "0 AS s_order", "false AS s_late"
            )
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionByName(part)
        newest = Window.partitionBy(*keys).orderBy(
            F.col("s_late").desc(), F.col("s_order").desc_nulls_last(), F.col("s_gone")
        )
        numbered = whole.withColumn("_esker_number", F.row_number().over(newest))
        return numbered.where("_esker_number = 1").drop("_esker_number")

    def _read(
        self, reader: Reader, present: Table, rules: KeyRules, parts: list[DataFrame], *, is_late: bool
    ) -> tuple[Position | None, int]:
        """Add what a reader finds to the parts; return how far it came, and in how many pieces."""
        position: Position | None = None
        pieces = 0
        with closing(reader) as source:
            has_more = True
            while has_more:
                fetched = source.fetch(source.plan(position))
                if fetched.failures:
                    raise PartsMissing(self.name, fetched.failures)
                has_more = fetched.has_more
                for piece in fetched.slices:
                    found = self._narrow(source, piece, present, rules)
                    part = self._kept.keep(found.withColumn("s_late", F.lit(is_late)))
                    part.count()  # its rows are here no longer than the next ones are fetched
                    parts.append(part)
                    source.settled(piece)
                    position = piece.end
                    pieces += piece.pieces
        return position, pieces

    def _narrow(self, source: Reader, piece: Slice, present: Table, rules: KeyRules) -> DataFrame:
        columns = tuple(column for column in present.columns if not is_own(column.name))
        sent = typed(self.engine, source, [piece], self.pipeline, present)
        marks = self.pipeline.deleted_column.lower()
        column = next((each.name for each in columns if each.name.lower() == marks), None)
        is_sent = any(each.name.lower() == marks for each in sent.columns)
        mark = DeleteMark(self.pipeline.delete_when, column if is_sent else None)
        rows = incoming(source.read(piece, columns), columns, rules, mark, RowRules())
        counted = rules.hashed(tuple(each.name for each in columns))
        ids = Attempt(self.engine, present.id).schema.ids
        hashed = spark_hash(tuple(each for each in columns if each.name in counted), ids)
        keys = [F.col(quoted(name)) for name in rules.key]
        has_key = F.lit(True)
        for key in keys:
            has_key &= key.isNotNull()
        # A row that cannot be loaded is there all the same: its key has not vanished.
        return rows.where(has_key).select(
            *keys,
            F.when(F.col(BAD).isNull(), hashed).alias("s_hash"),
            F.col(DELETED).alias("s_gone"),
            _order(rules).alias("s_order"),
        )

    def _join(self, source: DataFrame, stored: DataFrame, rules: KeyRules) -> DataFrame:
        """Return all keys of both sides, each with its kind."""
        keys = [F.col(quoted(name)) for name in rules.key]
        in_source = F.coalesce(~F.col("s_gone"), F.lit(False))
        in_table = F.coalesce(~F.col("t_gone"), F.lit(False))
        is_older = F.coalesce(F.col("s_order") < F.col("t_order"), F.lit(False))
        differs = F.col("s_hash").isNotNull() & ~F.col("s_hash").eqNullSafe(F.col("t_hash"))
        differs &= F.lit(not rules.only_inserts)  # there, what is stored stays as it is
        is_late = F.coalesce(F.col("s_late"), F.lit(False))
        kind = (
            F.when(is_late, F.when(in_table, "same").otherwise("late"))  # the next run brings it
            .when(in_source & ~in_table, F.when(F.col("s_hash").isNull(), "bad").otherwise("missing"))
            .when(in_table & ~in_source, F.when(is_older, "older").otherwise("vanished"))
            .when(~in_source & ~in_table, "gone")
            .when(differs, F.when(is_older, "older").otherwise("different"))
            .otherwise("same")
        )
        joined = source.join(stored, list(rules.key), "full_outer")
        return joined.select(*keys, kind.alias("kind"), "t_hash", "t_order")


@dataclass(frozen=True)
class _Repair:
    """Makes a table like its source."""

    project: Project
    start: Start
    state: State
    listen: Listener
    found: Reconciliation
    sides: _Sides
    approved: int | None

    def done(self) -> Reconciliation:
        self._check_deletes()
        results = []
        if self.found.missing or self.found.different or self.sides.is_whole:
            results.append(self._loaded())
        if self.found.vanished and not self.sides.is_whole:
            results.append(self._deleted())
        return replace(self.found, repairs=tuple(results))

    def _check_deletes(self) -> None:
        """Raise Held when more would be deleted than may be unseen."""
        share = self.sides.pipeline.guard.max_delete
        most = int(self.found.table_keys * (share if share is not None else _SHARE))
        vanished = self.found.vanished
        if vanished <= most or (self.approved is not None and vanished <= self.approved):
            return
        told = f"{vanished:,} of its {self.found.table_keys:,} rows have vanished from the source"
        name = self.found.pipeline
        error = Held(name, self.found.table, [Tripped("max_delete", vanished, most, told)])
        error.remedy = (
            "If they are really gone, let them be deleted: "
            f"esker reconcile {name} --repair --approve {vanished}"
        )
        raise error

    def _loaded(self) -> RunResult:
        """Load what is missing or differs; of a source that is read as a whole, delete what has vanished."""
        name = self.found.pipeline
        pipeline, span = self.sides.pipeline, Span()
        if not self.sides.is_whole:
            # A content that differs under the same date is what was looked for.
            is_dated = pipeline.mode == "upsert" and pipeline.order_by is not None
            span = replace(_EVER, replaces_equal=is_dated)
            if self._knows_ids():
                ids = (*self.sides.keys("missing"), *self.sides.keys("different"))
                span = Span(ids=ids, replaces_equal=is_dated)
        approved = {"max_delete": self.found.vanished}
        return self._finished(
            backfill(self.project, self.start, self.state, name, span, self.listen, approved=approved)
        )

    def _deleted(self) -> RunResult:
        """Delete what has vanished from a source that is read by windows.

        As a statement would: neither `delete_when` nor the mode says what is a delete here, and whoever
        writes to the table meanwhile makes it look again.
        """
        if self._knows_ids():
            self.sides.confirm()
        rows, name = StatementRows(self.sides.doomed), self.found.pipeline
        return self._finished(run_pipeline(self.project, self.start, self.state, name, self.listen, rows))

    def _finished(self, result: RunResult) -> RunResult:
        """Return how a repair went, or raise what kept it from being done."""
        if result.error is not None:
            raise result.error
        if result.status == "skipped":
            raise PipelineBusy(result.pipeline, ", ".join(result.notes).partition(": ")[2])
        return result

    def _knows_ids(self) -> bool:
        """Tell whether records can be asked for by their keys: each is one, and as the source calls it."""
        pipeline = self.sides.pipeline
        if list(pipeline.key) != ["id"] or pipeline.transform is not None:
            return False
        with closing(open_reader(self.sides.engine, self.found.pipeline)) as source:
            by_ids = source.by_ids(())
            if by_ids is not None:
                by_ids.close()
            return by_ids is not None


def _order(rules: KeyRules) -> Expression:
    return F.col(quoted(rules.order_by)) if rules.order_by is not None else F.lit(0)


def _is_gone(rules: KeyRules) -> Expression:
    """Tell whether a stored row is marked as deleted."""
    if rules.deleted_column is None:
        return F.lit(False)
    return F.coalesce(F.col(quoted(rules.deleted_column)), F.lit(False))


def _stored(rows: DataFrame, rules: KeyRules) -> DataFrame:
    """Return of a table's rows what is compared."""
    return rows.select(
        *(F.col(quoted(name)) for name in rules.key),
        F.col(HASH_COLUMN).alias("t_hash"),
        _is_gone(rules).alias("t_gone"),
        _order(rules).alias("t_order"),
    )
