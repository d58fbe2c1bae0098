"""The small lane for modes in which a key may have several rows: what the edits say is done."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.lookup import Found, read_rows
from esker.engine.iceberg.manifests import FileEntry
from esker.ledger.change_log import HASH_AFTER, HASH_BEFORE, OP, ORDER, ROW
from esker.load.comparison import Compared
from esker.load.counts import RowCounts
from esker.load.edits import edit_steps, numbered_sql
from esker.load.lanes.small import SmallBatch, comparable, counted, query, with_column
from esker.project.reserved import HASH_COLUMN


class SmallEdits(SmallBatch):
    """A batch in memory whose keys may have several rows."""

    def _winners(self) -> pa.Table:
        """Return one row of each key, and keep all with the number of their key."""
        narrow: dict[str, Any] = {
            f"k{index}": self.rows.column(name) for index, name in enumerate(self.rules.key)
        }
        narrow |= {
            "place": pa.array(range(len(self.rows)), pa.int64()),
            "ord": comparable(self._orders()),
            **self._times(self._orders()),
            "del": self.deletes,
            "hash": self._hashes,
        }
        self._dates = self._undated(narrow)
        rows = query(self.connection, numbered_sql(self.rules, "incoming"), incoming=pa.table(narrow))
        self._incoming = rows.select(["place", "k", "ord", "until", "bound", "del", "hash"])
        return rows.filter(pc.equal(rows.column("place"), rows.column("k"))).sort_by("place")

    def _orders(self) -> Any:
        if self.rules.order_by is not None:
            return self.rows.column(self.rules.order_by)
        moment = self.rules.versions.moment if self.rules.versions is not None else None
        return pa.repeat(pa.scalar(moment, pa.timestamp("us", tz="UTC")), len(self.rows))

    def _compare(self, attempt: Attempt, found: list[Found], moment: datetime) -> Compared[pa.Table]:
        edits = self._edits(attempt, found, moment)
        outcomes = counted(edits.filter(pc.is_valid(edits.column("outcome"))))
        duplicates = len(self.rows) - sum(outcomes.values()) + outcomes.get("missing", 0)
        counts = RowCounts.of_outcomes(outcomes, duplicates=duplicates, quarantined=self.quarantined)
        self.given.check(counts, lambda: attempt.files.rows, self.tally)
        is_logged = pc.is_valid(edits.column("op"))
        told = edits.filter(pc.or_(edits.column("writes"), is_logged))
        rows = self._contents(attempt, found, told)
        comes, is_logged = told.column("writes"), pc.is_valid(told.column("op"))
        written = rows.filter(comes).append_column(HASH_COLUMN, told.filter(comes).column("after"))
        remembered = self._unseen(edits)
        return Compared(
            counts=counts,
            doomed=_removed(found, edits),
            rows=written,
            changes=self._log(rows.filter(is_logged), told.filter(is_logged))
            if self.given.log is not None
            else None,
            remembered=remembered if len(remembered) else None,
            is_change=bool(self.quarantined or len(remembered) or pc.any(is_logged).as_py()),
        )

    def _edits(self, attempt: Attempt, found: list[Found], moment: datetime) -> pa.Table:
        places = self.winners.column("place")
        stored = self._stored(found)
        stored = stored.set_column(0, "winner", places.take(stored.column("winner")))
        forgotten = self._forgotten(attempt, moment)
        forgotten = forgotten.set_column(0, "asked", places.take(forgotten.column("asked")))
        tables = {"incoming": self._incoming, "stored": stored, "forgotten": forgotten}
        for name, sql in edit_steps(self.rules, ("place",), self._dates):
            tables[name] = query(
                self.connection, sql.format_map({known: known for known in tables}), **tables
            )
        return tables["edits"]

    def _contents(self, attempt: Attempt, found: list[Found], edits: pa.Table) -> pa.Table:
        """Return the rows that edits are about, in their order: of the batch, or stored ones."""
        of_store = edits.filter(pc.is_null(edits.column("place")))
        parts: list[pa.Table] = [self.rows]
        at: dict[tuple[int, int], int] = {}
        known = len(self.rows)
        wanted: list[tuple[FileEntry, BitMap64]] = []
        for index, hits in enumerate(found):
            here = of_store.filter(pc.equal(of_store.column("file"), index)).column("pos").to_pylist()
            if here:
                positions = BitMap64(here)
                wanted.append((hits.file, positions))
                at |= {(index, position): known + nth for nth, position in enumerate(positions)}
                known += len(positions)
        for read in read_rows(attempt.store, attempt.schema, wanted):
            parts.append(read.select(self.rows.column_names))
        names = ("place", "file", "pos")
        where = [
            place if place is not None else at[file, position]
            for place, file, position in zip(*(edits.column(name).to_pylist() for name in names), strict=True)
        ]
        rows = pa.concat_tables(parts).take(pa.array(where, pa.int64()))
        if self.rules.versions is not None:
            told = ("valid_from", "valid_to", "is_current")
            for name, source in zip(self.rules.versions.names, told, strict=True):
                rows = with_column(rows, name, edits.column(source).cast(rows.schema.field(name).type))
        return rows

    def _unseen(self, edits: pa.Table) -> pa.Table:
        """Return the deletes that no row of the table will tell of: key and order value."""
        if self.rules.order_by is None:
            return pa.table({})
        unseen = edits.filter(edits.column("remember"))
        rows = self.rows.select(list(self.rules.key)).take(unseen.column("number"))
        kind = self.rows.schema.field(self.rules.order_by).type
        return rows.append_column(ORDER, unseen.column("final").cast(kind))

    def _log(self, rows: pa.Table, edits: pa.Table) -> pa.Table:
        """Return the rows of the change log, in the order of arrival."""
        beyond = pa.array(range(self.read, self.read + len(edits)), pa.int64())
        facts = {
            OP: edits.column("op"),
            HASH_BEFORE: edits.column("before"),
            HASH_AFTER: edits.column("after"),
            ROW: pc.coalesce(self.numbers.take(edits.column("number")), beyond),
        }
        if self.rules.order_by:
            facts[ORDER] = edits.column("final").cast(self.rows.schema.field(self.rules.order_by).type)
        for name, values in facts.items():
            rows = rows.append_column(name, values)
        return rows.sort_by(ROW)


def _removed(found: list[Found], edits: pa.Table) -> dict[FileEntry, BitMap64]:
    """Return the positions of stored rows that go."""
    removed: dict[FileEntry, BitMap64] = {}
    gone = edits.filter(edits.column("removes"))
    for index, hits in enumerate(found):
        positions = gone.filter(pc.equal(gone.column("file"), index)).column("pos")
        if len(positions):
            removed[hits.file] = BitMap64(positions.to_pylist())
    return removed
