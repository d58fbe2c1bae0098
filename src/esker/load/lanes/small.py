"""The small lane: a keyed batch that fits into memory, written from this process without a Spark job.

Everything that depends on the table happens in `make`, on exactly the metadata that the attempt will
compare with: stored versions are located, rows classified, data, deletes and change rows written. When
another commit was faster, it happens again; only data files whose rows are the same are used again.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from esker.contracts.rules import Tally
from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.lookup import Found, Keys, look_up, read_rows
from esker.engine.iceberg.manifests import FileEntry, LiveFiles
from esker.engine.iceberg.positions import StagedDeletes
from esker.engine.iceberg.stage import StagedFiles
from esker.events import Step
from esker.ledger.change_log import HASH_AFTER, HASH_BEFORE, OP, ORDER, ROW
from esker.ledger.foreign import foreign
from esker.ledger.side_table import Stamp
from esker.load.batch import measures_of
from esker.load.comparison import Compared, Comparison
from esker.load.counts import RowCounts
from esker.load.diff import GONE, LOGGED, REPLACED, WRITTEN, Undated, verdicts_sql, winners_sql
from esker.load.publish import Change, Made
from esker.load.row_hash import arrow_hash
from esker.project.reserved import HASH_COLUMN

_STORED = pa.schema(
    [("winner", pa.int64()), ("file", pa.int64()), ("pos", pa.int64()), ("s_hash", pa.int64())]
)
_POOL = ThreadPoolExecutor(4, thread_name_prefix="esker-write")


@dataclass
class SmallBatch(Change):
    """A keyed batch in memory."""

    given: Comparison
    rows: pa.Table
    """The rows with a key, as the table's columns without HASH_COLUMN, in the order of arrival."""
    numbers: pa.Array
    """Each row's place in the batch."""
    deletes: pa.Array
    """Which rows are deletes."""
    until: pa.Array | None
    """When each row became what it is, at the latest, where the source knows it."""
    rejected: pa.Table | None
    """Rows without a key, as the quarantine keeps them."""
    connection: duckdb.DuckDBPyConnection
    attempt: Attempt | None
    """Open already; the first attempt at the table."""
    protected: pa.Table | None = None
    """Further keys that a complete batch does not lack."""
    tally: Tally = field(default_factory=Tally)
    _data: tuple[pa.Table, StagedFiles] | None = None
    winners: pa.Table = field(init=False)
    keys: Keys = field(init=False)

    def __post_init__(self) -> None:
        self.rules = self.given.rules
        self._counted = self.rules.hashed(tuple(self.rows.column_names))
        self._hashes = arrow_hash(self.rows.select(self._counted), self.given.ids)
        self.winners = self._winners()
        keys = self.rows.select(list(self.rules.key)).take(self.winners.column("place"))
        if self.protected is not None and len(self.protected):
            # Behind all others: no row of the batch has their numbers.
            keys = pa.concat_tables([keys, self.protected.cast(keys.schema)])
        self.keys = Keys(keys)

    @property
    def columns(self) -> tuple[str, int]:
        return self.given.table

    def first_attempt(self) -> Attempt | None:
        attempt, self.attempt = self.attempt, None
        return attempt

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        try:
            return self._make(attempt, self.given.stamp(changeset))
        except FileNotFoundError as error:
            # Expired under the lookup: somebody else's commit, so this attempt is lost anyway.
            raise SwapFailed("FileNotFoundError", str(error)) from error

    def _make(self, attempt: Attempt, stamp: Stamp) -> Made | RowCounts:
        self.given.check_base(attempt)
        found, looked_at = self._locate(attempt)
        found = self._by_content(attempt, found)
        self.given.reached(Step.LOCATED)
        compared = self._compare(attempt, found, stamp.moment)
        is_resolved = self.given.resolved is not None
        if compared.is_nothing and not is_resolved:
            return compared.counts
        # At the same time: a store takes its time for each file, not for their number.
        writing: Future[Any] = _POOL.submit(self._write, attempt, compared.rows)
        deleting: Future[Any] = _POOL.submit(attempt.delete, compared.doomed, self._files(attempt))
        try:
            owed, owed_files = self.given.stage_sides(
                stamp, changes=compared.changes, rejected=self.rejected, deletes=compared.remembered
            )
        finally:
            wait((writing, deleting))
        data: StagedFiles | None = writing.result()
        deletes: StagedDeletes = deleting.result()
        self.given.reached(Step.WRITTEN)
        staged = [data] if data is not None else []

        def commit(attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
            if not staged and not compared.doomed:
                return attempt.touch(summary)
            return attempt.row_delta(staged, deletes, looked_at, summary)

        size = deletes.bytes + sum(files.bytes for files in staged)
        return Made(
            commit,
            compared.counts,
            size,
            owed,
            owed_files,
            compared.is_change or is_resolved,
            stamp.summary(),
            measures=measures_of(self.tally),
        )

    def _compare(self, attempt: Attempt, found: list[Found], moment: datetime) -> Compared[pa.Table]:
        verdicts = self._classify(found, self._forgotten(attempt, moment))
        outcomes = counted(verdicts)
        duplicates = len(self.rows) - len(self.winners)
        counts = RowCounts.of_outcomes(outcomes, duplicates=duplicates, quarantined=self.quarantined)
        self.given.check(counts, lambda: self._live(attempt, found), self.tally)
        last_rows = self._last_rows(attempt, found, verdicts)
        remembered = self._remembered(verdicts, last_rows)
        is_change = bool(self.quarantined or len(remembered) or any(outcomes.get(name) for name in LOGGED))
        return Compared(
            counts=counts,
            doomed=_doomed(found, verdicts),
            rows=self._written(verdicts, last_rows),
            changes=self._changes(verdicts, last_rows) if self.given.log is not None else None,
            remembered=remembered if len(remembered) else None,
            is_change=is_change,
        )

    @property
    def read(self) -> int:
        """How many rows the batch has."""
        return len(self.rows) + self.quarantined

    @property
    def quarantined(self) -> int:
        """How many rows have no key."""
        return len(self.rejected) if self.rejected is not None else 0

    def _winners(self) -> pa.Table:
        """Return the newest version of each key: its place among the rows, and what decides."""
        narrow: dict[str, Any] = {
            f"k{index}": self.rows.column(name) for index, name in enumerate(self.rules.key)
        }
        count = len(self.rows)
        order = self.rows.column(self.rules.order_by) if self.rules.order_by else pa.nulls(count, pa.int64())
        narrow |= {
            "ord": comparable(order),
            **self._times(order),
            "del": self.deletes,
            "hash": self._hashes,
            "place": pa.array(range(count), pa.int64()),
        }
        sql = winners_sql(self.rules, "incoming", ("place",), self._undated(narrow))
        found = query(self.connection, sql, incoming=pa.table(narrow))
        return found.select(["place", "ord", "eff", "del", "hash"]).sort_by("place")

    def _undated(self, narrow: Mapping[str, Any]) -> Undated:
        if self.rules.order_by is None:
            return Undated.NONE
        undated = pc.and_(self.deletes, pc.is_null(narrow["ord"]))
        loose = pc.and_(undated, pc.is_null(narrow["bound"]))
        return Undated.of(*(pc.sum(found).as_py() or 0 for found in (undated, loose)))

    def _times(self, order: Any) -> dict[str, Any]:
        """Return `until` and `bound`, as `dated_sql` wants them."""
        kind = comparable(order).type
        if self.until is None:
            count = len(self.rows)
            return {"until": pa.repeat(pa.scalar(0, pa.int64()), count), "bound": pa.nulls(count, kind)}
        is_time = pa.types.is_timestamp(order.type) or pa.types.is_date(order.type)
        zoneless = self.until.cast(pa.timestamp("us"))
        bound = comparable(zoneless.cast(_zoneless(order.type), safe=False)) if is_time else None
        return {
            "until": zoneless.cast(pa.int64()).fill_null(0),
            "bound": bound if bound is not None else pa.nulls(len(self.rows), kind),
        }

    def _locate(self, attempt: Attempt) -> tuple[list[Found], list[FileEntry]]:
        if not len(self.winners) and not self.rules.is_complete:
            return [], []
        wanted = [HASH_COLUMN]
        wanted += [name for name in (self.rules.order_column, self.rules.deleted_column) if name]
        wanted += [self.rules.versions.valid_to] if self.rules.versions is not None else []
        whole = self.rules.is_complete
        found, looked_at = look_up(self._files(attempt), attempt.schema, self.keys, wanted, whole=whole)
        return (_numbered(found) if whole else found), looked_at

    def can_read(self, attempt: Attempt) -> bool:
        """Tell whether this process can read the files that may hold the batch's keys."""
        files = self._files(attempt)
        return not files.has_equality_deletes and all(file.format == "parquet" for file in files.data)

    def _files(self, attempt: Attempt) -> LiveFiles:
        """Return the files of a table that the batch is compared with."""
        return attempt.files if self.rules.is_complete else attempt.files_with(self.keys)

    def _by_content(self, attempt: Attempt, found: list[Found]) -> list[Found]:
        """Return stored rows with the hashes of their content, also where another engine wrote them."""
        theirs = foreign(attempt)
        return [self._rehashed(attempt, hits, is_doubtful=theirs.doubts(hits.file)) for hits in found]

    def _rehashed(self, attempt: Attempt, hits: Found, *, is_doubtful: bool) -> Found:
        hashes = hits.rows.column(HASH_COLUMN).combine_chunks()
        doubtful = pa.repeat(pa.scalar(True), len(hashes)) if is_doubtful else pc.is_null(hashes)
        # Rows that a complete batch lacks are not compared.
        doubtful = pc.and_(doubtful, pc.greater_equal(hits.asked, 0))
        if not pc.any(doubtful).as_py():
            return hits
        positions = BitMap64(hits.positions.filter(doubtful).to_pylist())
        wanted = [(hits.file, positions)]
        [rows] = read_rows(attempt.store, attempt.schema, wanted, self._counted)
        anew = arrow_hash(rows, self.given.ids)
        hashes = pc.replace_with_mask(hashes, doubtful, anew)
        return replace(hits, rows=with_column(hits.rows, HASH_COLUMN, hashes))

    def _live(self, attempt: Attempt, found: list[Found]) -> int:
        """Return how many rows the table has; for a complete batch, without those marked as deleted."""
        if not self.rules.is_complete:
            return attempt.files.rows
        marks = self.rules.deleted_column
        gone = sum(pc.sum(hits.rows.column(marks)).as_py() or 0 for hits in found) if marks else 0
        return sum(len(hits.positions) for hits in found) - gone

    def _forgotten(self, attempt: Attempt, moment: datetime) -> pa.Table:
        """Return the order values of remembered deletes of the batch's keys."""
        memory = self.given.memory.known(attempt) if self.rules.order_by and len(self.winners) else None
        if memory is None:
            kind = self.winners.column("ord").type
            return pa.table({"asked": pa.array([], pa.int64()), "forgotten": pa.array([], kind)})
        since = moment - self.given.memory.late
        found = memory.recall(self.keys, since, only_newest=self.rules.versions is None)
        return found.set_column(1, "forgotten", comparable(found.column("forgotten")))

    def _stored(self, found: list[Found]) -> pa.Table:
        """Return what decides of the stored rows, with their places; `winner` is the place of their key."""
        rules = self.rules
        parts = []
        for index, hits in enumerate(found):
            count = len(hits.positions)
            nothing = pa.nulls(count, pa.int64())
            order = comparable(hits.rows.column(rules.order_column)) if rules.order_column else nothing
            ended = comparable(hits.rows.column(rules.versions.valid_to)) if rules.versions else nothing
            gone = (
                hits.rows.column(rules.deleted_column).fill_null(False)
                if rules.deleted_column
                else pa.repeat(pa.scalar(False), count)
            )
            parts.append(
                pa.table(
                    {
                        "winner": hits.asked.cast(pa.int64()),
                        "file": pa.repeat(pa.scalar(index, pa.int64()), count),
                        "pos": hits.positions,
                        "s_hash": hits.rows.column(HASH_COLUMN),
                        "s_order": order,
                        "s_to": ended,
                        "s_deleted": gone,
                    }
                )
            )
        if parts:
            whole = pa.concat_tables(parts)
            return whole.filter(pc.less(whole.column("winner"), len(self.winners)))
        stored = _STORED.empty_table()
        kind = self.winners.column("ord").type
        stored = stored.append_column("s_order", pa.nulls(0, kind)).append_column("s_to", pa.nulls(0, kind))
        return stored.append_column("s_deleted", pa.nulls(0, pa.bool_()))

    def _classify(self, found: list[Found], forgotten: pa.Table) -> pa.Table:
        """Return each winner with its outcome, and its stored version."""
        winners = self.winners.append_column("winner", pa.array(range(len(self.winners)), pa.int64()))
        sql = verdicts_sql(self.rules, "winners", "stored", "forgotten")
        tables = {"winners": winners, "stored": self._stored(found), "forgotten": forgotten}
        verdicts = query(self.connection, sql, **tables).sort_by("winner")
        known = pc.if_else(pc.less(verdicts["winner"], 0), pa.scalar(None, pa.int64()), verdicts["winner"])
        return verdicts.append_column("place", winners.column("place").take(known))

    def _last_rows(self, attempt: Attempt, found: list[Found], verdicts: pa.Table) -> pa.Table:
        """Return the stored rows of keys that are deleted, in the order of the verdicts."""
        gone = verdicts.filter(_is(verdicts, GONE))
        wanted, order = [], []
        for index, hits in enumerate(found):
            here = gone.filter(pc.equal(gone.column("file"), index)).sort_by("pos")
            if len(here):
                wanted.append((hits.file, BitMap64(here.column("pos").to_pylist())))
                order += here.column("winner").to_pylist()
        if not wanted:
            return attempt.schema.arrow.empty_table()
        rows = pa.concat_tables(read_rows(attempt.store, attempt.schema, wanted))
        # Other engines leave rows with a hash of other rows: it must not go on into Esker's own files.
        rows = with_column(rows, HASH_COLUMN, arrow_hash(rows.select(self._counted), self.given.ids))
        return rows.take(pc.sort_indices(pa.array(order, pa.int64())))

    def _remembered(self, verdicts: pa.Table, last_rows: pa.Table) -> pa.Table:
        """Return the deletes that no row of the table will tell of: key and order value."""
        keys = list(self.rules.key)
        order_by = self.rules.order_by
        if order_by is None:
            return pa.table({})
        unseen = pc.and_(pc.is_null(verdicts.column("file")), verdicts.column("del"))
        unseen = pc.or_(pc.fill_null(unseen, False), verdicts.column("again"))
        # A delete that is remembered already need not be written down again.
        known = pc.fill_null(pc.less_equal(verdicts.column("final"), verdicts.column("forgotten")), False)
        new = pc.and_(pc.is_valid(verdicts.column("final")), pc.invert(known))
        kind = self.rows.schema.field(order_by).type
        ignored = verdicts.filter(pc.and_(unseen, new))
        rows = self.rows.select(keys).take(ignored.column("place"))
        orders = ignored.column("final").cast(kind)
        if self.rules.deleted_column is None and len(last_rows):
            gone = verdicts.filter(_is(verdicts, GONE))
            rows = pa.concat_tables([rows, last_rows.select(keys).cast(rows.schema)])
            orders = pa.chunked_array([*orders.chunks, *gone.column("final").cast(kind).chunks], kind)
        rows = rows.append_column(ORDER, orders)
        return rows.filter(pc.is_valid(rows.column(ORDER)))

    def _written(self, verdicts: pa.Table, last_rows: pa.Table) -> pa.Table:
        """Return the rows that the table gets."""
        rows = self._arriving(verdicts.filter(_is(verdicts, WRITTEN)))
        if self.rules.deleted_column and len(last_rows):
            gone = verdicts.filter(_is(verdicts, GONE))
            rows = pa.concat_tables([rows, self._buried(last_rows, gone).select(rows.column_names)])
        return rows

    def _write(self, attempt: Attempt, rows: pa.Table) -> StagedFiles | None:
        """Write the rows that the table gets; those of a lost attempt are taken if they are the same."""
        if not len(rows):
            return None
        if self._data is not None and self._data[0].equals(rows):
            return self._data[1]
        ordered = self._sorted(attempt, rows) if len(rows) > 1 else rows
        self._data = rows, attempt.write(ordered.select(attempt.schema.arrow.names), str(uuid4()))
        return self._data[1]

    def _sorted(self, attempt: Attempt, rows: pa.Table) -> pa.Table:
        """Return rows as the table wants them sorted, or by key."""
        order: list[Any] = [
            (field.column, "descending" if field.is_descending else "ascending")
            for field in attempt.sort_fields
        ]
        return rows.sort_by(order or [(name, "ascending") for name in self.rules.key])

    def _arriving(self, verdicts: pa.Table) -> pa.Table:
        # Places ascend, each once: as many as there are rows are all of them.
        is_all = len(verdicts) == len(self.rows)
        rows = self.rows if is_all else self.rows.take(verdicts.column("place"))
        if self.rules.deleted_column:
            live = pa.repeat(pa.scalar(False), len(rows))
            rows = with_column(rows, self.rules.deleted_column, live)
        return rows.append_column(HASH_COLUMN, verdicts.column("hash"))

    def _buried(self, last_rows: pa.Table, verdicts: pa.Table) -> pa.Table:
        """Return rows as soft deletes leave them: marked, with the order value of the delete."""
        assert self.rules.deleted_column is not None
        dead = pa.repeat(pa.scalar(True), len(last_rows))
        rows = with_column(last_rows, self.rules.deleted_column, dead)
        if self.rules.order_by:
            kind = rows.schema.field(self.rules.order_by).type
            rows = with_column(rows, self.rules.order_by, verdicts.column("final").cast(kind))
        return rows

    def _changes(self, verdicts: pa.Table, last_rows: pa.Table) -> pa.Table:
        """Return the rows of the change log, in the order of arrival."""
        changed = verdicts.filter(_is(verdicts, LOGGED))
        is_gone = _is(changed, GONE)
        arriving, gone = changed.filter(pc.invert(is_gone)), changed.filter(is_gone)
        rows = self._arriving(arriving).drop_columns([HASH_COLUMN])
        if len(gone):
            buried = self._buried(last_rows, gone) if self.rules.deleted_column else last_rows
            rows = pa.concat_tables([rows, buried.select(rows.column_names)])
        together = pa.concat_tables([arriving, gone])
        before = [*arriving.column("s_hash").chunks, *last_rows.column(HASH_COLUMN).chunks]
        is_gone = _is(together, GONE)
        hashes = pc.if_else(is_gone, pa.scalar(None, pa.int64()), together.column("hash"))
        facts = {
            OP: pc.if_else(is_gone, "delete", together.column("outcome")),
            HASH_BEFORE: pa.chunked_array(before, pa.int64()),
            HASH_AFTER: hashes,
            ROW: self._row_numbers(together),
        }
        if self.rules.order_by:
            kind = self.rows.schema.field(self.rules.order_by).type
            facts[ORDER] = together.column("final").cast(kind)
        for name, values in facts.items():
            rows = rows.append_column(name, values)
        return rows.sort_by(ROW) if len(gone) else rows

    def _row_numbers(self, verdicts: pa.Table) -> pa.ChunkedArray:
        """Return each change's place in the batch; keys that it lacks come after its rows."""
        beyond = pc.subtract(pa.scalar(self.read - 1, pa.int64()), verdicts.column("winner"))
        return pc.coalesce(self.numbers.take(verdicts.column("place")), beyond)


def _numbered(found: list[Found]) -> list[Found]:
    """Give numbers of their own, below zero, to stored rows that the batch lacks."""
    numbered = []
    last = 0
    for hits in found:
        lacking = pc.is_null(hits.asked)
        count = pc.sum(lacking).as_py() or 0
        own = pa.array(range(last - 1, last - 1 - count, -1), pa.int64())
        numbered.append(replace(hits, asked=pc.replace_with_mask(hits.asked.cast(pa.int64()), lacking, own)))
        last -= count
    return numbered


def _is(verdicts: pa.Table, outcomes: tuple[str, ...]) -> pa.ChunkedArray:
    return pc.is_in(verdicts.column("outcome"), value_set=pa.array(outcomes))


def _doomed(found: list[Found], verdicts: pa.Table) -> dict[FileEntry, BitMap64]:
    """Return the positions to delete: of versions that are replaced, and of surplus copies of a key."""
    names = ("winner", "file", "pos")
    winners, files, places = (verdicts.column(name).to_pylist() for name in names)
    goes = _is(verdicts, REPLACED).to_pylist()
    kept = {
        winner: None if gone else (file, place)
        for winner, gone, file, place in zip(winners, goes, files, places, strict=True)
    }
    doomed: dict[FileEntry, BitMap64] = {}
    for index, hits in enumerate(found):
        positions = BitMap64(
            position
            for position, winner in zip(hits.positions.to_pylist(), hits.asked.to_pylist(), strict=True)
            if winner in kept and kept[winner] != (index, position)
        )
        if positions:
            doomed[hits.file] = positions
    return doomed


def counted(verdicts: pa.Table) -> dict[str, int]:
    """Return how often each outcome is there."""
    counted = verdicts.group_by("outcome").aggregate([([], "count_all")]).to_pydict()
    return dict(zip(counted["outcome"], counted["count_all"], strict=True))


def comparable(values: Any) -> Any:
    """Return order values as DuckDB compares them best: moments as whole numbers."""
    return (
        values.cast(pa.int64())
        if pa.types.is_temporal(values.type) and not pa.types.is_date(values.type)
        else values
    )


def _zoneless(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind


def with_column(rows: pa.Table, name: str, values: Any) -> pa.Table:
    """Return rows with other values in one of their columns."""
    at = rows.schema.get_field_index(name)
    return rows.set_column(at, rows.schema.field(at).with_nullable(True), values)


def query(connection: duckdb.DuckDBPyConnection, sql: str, **tables: pa.Table) -> pa.Table:
    """Return what a query over Arrow tables finds."""
    for name, table in tables.items():
        connection.register(name, table)
    try:
        return connection.execute(sql).to_arrow_table()
    finally:
        for name in tables:
            connection.unregister(name)
