"""Put rows of other tables into a row, each table at one snapshot for a whole delivery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from esker.changes.since import UNREADABLE, LogPosition
from esker.changes.spark import SparkLog
from esker.deliver.feed import Subscription
from esker.engine.compat import snapshot_frame
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.lineage import snapshots_since
from esker.engine.iceberg.metadata import Snapshot, SnapshotId
from esker.engine.iceberg.rows import pinned_rows
from esker.engine.iceberg.table import Table, find_snapshot, find_table, named_table
from esker.engine.session import Engine
from esker.errors import DeliveryRefused, ReindexNeeded
from esker.ledger.consumer_tags import move_tag
from esker.ledger.live_rows import live
from esker.ledger.offsets import Offset
from esker.project.consumers import Enrichment
from esker.project.reserved import is_own
from esker.project.types import quoted
from esker.sources.copied_key import SEVERAL


@dataclass(frozen=True)
class Enrichments:
    """The other tables of a consumer, as they are when a delivery begins."""

    engine: Engine
    subscription: Subscription
    tables: Mapping[str, Table]
    version: int
    """The sum of their sequence numbers: it grows whenever one of them changes."""

    @classmethod
    def pin(cls, engine: Engine, subscription: Subscription) -> Self:
        """Look at each table once. Raises DeliveryRefused for one that is not there."""
        tables: dict[str, Table] = {}
        version = 0
        for name, wanted in subscription.consumer.enrich.items():
            id_ = named_table(engine.project, wanted.table)
            engine.open_catalog(id_.catalog)
            found = find_table(engine, id_)
            if found is None:
                raise DeliveryRefused(subscription.name, f'There is no table "{wanted.table}".')
            tables[name] = found
            # The sequence number, as it also grows where others write.
            version += found.snapshot.sequence if found.snapshot is not None else 0
        return cls(engine, subscription, tables, version)

    @property
    def snapshots(self) -> dict[str, SnapshotId | None]:
        """The snapshot of each table, by the enrichment's name; None of one that is empty."""
        return {
            name: table.snapshot.id if table.snapshot is not None else None
            for name, table in self.tables.items()
        }

    def told(self, offset: Offset) -> Offset:
        """Return the offset of who has been told the tables as they are pinned."""
        return replace(offset, inputs=self.snapshots, beside=self.version)

    def tagged(self, offset: Offset, tag: str) -> Offset:
        """Return an offset with the snapshots that a tag names on the other tables."""
        inputs: dict[str, SnapshotId | None] = {}
        beside = 0
        for name, table in self.tables.items():
            attempt = Attempt(self.engine, table.id)
            tagged = attempt.tags.get(tag)
            found = attempt.snapshot(tagged) if tagged is not None else None
            if found is not None:
                inputs[name] = found.id
                beside += found.sequence
        return replace(offset, inputs=inputs, beside=beside)

    def tag(self, tag: str, snapshots: Mapping[str, SnapshotId | None] | None = None) -> None:
        """Let a tag keep snapshots that have been told, the pinned ones: the next delivery compares."""
        for name, snapshot in (self.snapshots if snapshots is None else snapshots).items():
            if snapshot is not None and name in self.tables:
                move_tag(self.engine, self.tables[name].id, tag, snapshot)

    def untag(self, tag: str) -> None:
        """Remove a tag from the other tables."""
        for table in self.tables.values():
            move_tag(self.engine, table.id, tag, None)

    def check(self, offset: Offset) -> None:
        """Raise ReindexNeeded where rows, or what has been told of them, would be older than before."""
        if gone := [name for name in offset.inputs if name not in self.tables]:
            self._need(f"enrich: {', '.join(gone)} was taken out, and its sequence numbers are in versions.")
        if new := [name for name in self.tables if name not in offset.inputs]:
            self._need(f"enrich: {', '.join(new)} is new, and nobody knows what was told of it.")
        for name, then in offset.inputs.items():
            if then is not None and snapshots_since(self.engine, self.tables[name], then) is None:
                self._need(f'Table "{self.tables[name].id}" was rolled back, or made anew.')
        if self.version < offset.beside:
            self._need("The other tables' sequence numbers went down: what is sent would count as old.")
        # A delivery that was stopped may have sent some of it, with the version of now.
        if self.version == offset.beside and any(
            self._is_without_number(*each) for each in offset.inputs.items()
        ):
            self._need(
                "The other tables changed, and their sequence numbers did not grow, as in tables of format "
                "version 1: what is sent would not count as newer. Upgrade them to version 2 before."
            )

    def _is_without_number(self, name: str, then: SnapshotId | None) -> bool:
        """Tell whether a table changed, and its sequence number did not grow."""
        table = self.tables[name]
        if table.snapshot is None or table.snapshot.id == then:
            return False
        told = find_snapshot(self.engine, table.id, then) if then is not None else None
        return table.snapshot.sequence <= (told.sequence if told is not None else 0)

    def _need(self, why: str) -> NoReturn:
        raise ReindexNeeded(self.subscription.name, why)

    def concerned(self, before: Mapping[str, SnapshotId | None], rows: DataFrame) -> DataFrame | None:
        """Return the rows to which rows belong that changed since; None when nothing changed.

        Raises ReindexNeeded where nobody can tell.
        """
        found: DataFrame | None = None
        for name, snapshot in self.snapshots.items():
            if before[name] == snapshot:
                continue
            wanted = self.subscription.consumer.enrich[name]
            changed = self._changed(self.tables[name], before[name], wanted)
            same = [
                F.col(quoted(mine)) == F.col(p) for mine, p in zip(wanted.on, _places(wanted), strict=True)
            ]
            here = rows.join(changed, same, "left_semi")
            found = here if found is None else found.unionByName(here)
        return None if found is None else found.dropDuplicates(list(self.subscription.ids))

    def _changed(self, table: Table, then: SnapshotId | None, wanted: Enrichment) -> DataFrame:
        """Return by what rows are joined that changed since a snapshot, as they were and as they are."""
        now = self._pinned(table)
        since = snapshots_since(self.engine, table, then) if then is not None else None
        if then is None:
            both = now  # it was empty
        elif since is None:
            self._need(f'Table "{table.id}" was rolled back, or made anew.')
        else:
            before = self._live(table, snapshot_frame(self.engine.spark, table.id.sql, then))
            keys = self._keys_changed(table, then, since)
            on = list(wanted.on.values())
            if keys is None:
                both = _compared(before, now, on)
            else:
                there, here = (
                    each.join(keys, keys.columns, "left_semi").select(*_named(each, on))
                    for each in (before, now)
                )
                both = there.unionByName(here)
        pairs = zip(wanted.on.values(), _places(wanted), strict=True)
        return both.select(*(F.col(quoted(theirs)).alias(p) for theirs, p in pairs)).distinct()

    def _keys_changed(self, table: Table, then: SnapshotId, since: Sequence[Snapshot]) -> DataFrame | None:
        """Return the keys of rows that changed, by the change log; None where it does not tell all."""
        if not self._tells_key(table) or any(
            each.operation != "replace" and "esker.changeset" not in each.summary for each in since
        ):
            return None
        try:
            log = SparkLog.open(self.engine, table.id)
            first = int(log.table.summary_at(then, "esker.changeset") or 0)
            log.check(LogPosition(log.uuid, first))
        except UNREADABLE:
            return None
        return log.changes(first, log.reached).select(*map(quoted, table.identifier)).distinct()

    def _tells_key(self, table: Table) -> bool:
        """Tell whether a table's identifier is what its log goes by: that of its writer, if it is known."""
        writer = self.engine.project.pipeline_into(table.id.catalog, table.id.name)
        known = {column.lower() for column in table.identifier}
        if writer is None or not known:
            return bool(known)
        has_one_row = writer.is_keyed and writer.mode not in SEVERAL
        return has_one_row and known == {column.lower() for column in writer.key}

    def added_to(self, rows: DataFrame) -> DataFrame:
        """Return rows with a column for each other table."""
        for name, table in self.tables.items():
            rows = self._added(rows, name, table, self.subscription.consumer.enrich[name])
        return rows

    def _added(self, rows: DataFrame, name: str, table: Table, wanted: Enrichment) -> DataFrame:
        if name.lower() in (column.lower() for column in rows.columns):
            why = f'The table has a column "{name}" already: call the enrichment otherwise.'
            raise DeliveryRefused(self.subscription.name, why)
        other = self._pinned(table)
        known = {column.lower() for column in other.columns}
        for own, theirs in wanted.on.items():
            for column, names in ((own, {each.lower() for each in rows.columns}), (theirs, known)):
                if column.lower() not in names:
                    raise DeliveryRefused(
                        self.subscription.name, f'enrich: {name}: there is no column "{column}" to join by.'
                    )
        chosen = wanted.columns or [column for column in other.columns if not is_own(column)]
        kinds = {column: other.select(quoted(column)).schema.simpleString() for column in chosen}
        if maps := [column for column, kind in kinds.items() if "map<" in kind]:
            why = f"enrich: {name}: {', '.join(maps)} has a map in it, which has no order: leave it out."
            raise DeliveryRefused(self.subscription.name, why)
        places = _places(wanted)
        joined = [
            F.col(quoted(theirs)).alias(p) for theirs, p in zip(wanted.on.values(), places, strict=True)
        ]
        # Inside a row that is not there, also what is required is null: Arrow refuses that otherwise.
        always = F.lit(0) == F.lit(0)
        inside = [F.when(always, F.col(quoted(column))).alias(column) for column in chosen]
        pairs = other.select(*joined, F.struct(*inside).alias(name))
        mine = [F.col(quoted(column)) for column in wanted.on]
        # Only those that somebody asks for: the other table may be far larger than a step.
        asked = rows.select(*(column.alias(p) for column, p in zip(mine, places, strict=True))).distinct()
        found = pairs.join(asked, places, "left_semi").groupBy(*places)
        # In one order, so that the same rows give the same message.
        in_order = F.sort_array(F.collect_list(quoted(name)))
        gathered = found.agg((in_order if wanted.many else in_order[0]).alias(name))
        same = [column == F.col(p) for column, p in zip(mine, places, strict=True)]
        joined_rows = rows.join(gathered, same, "left").drop(*places)
        if wanted.many:
            joined_rows = joined_rows.withColumn(name, F.coalesce(F.col(quoted(name)), F.array()))
        return joined_rows

    def _pinned(self, table: Table) -> DataFrame:
        """Return the rows of another table as they were when the delivery began."""
        rows = pinned_rows(self.engine, table)
        # A table without a snapshot is read as it is: rows that come meanwhile are told the next time.
        return self._live(table, rows if table.snapshot is not None else rows.where("false"))

    def _live(self, table: Table, rows: DataFrame) -> DataFrame:
        """Return rows of another table without those that are marked as deleted, or of the past."""
        pipeline = self.engine.project.pipeline_into(table.id.catalog, table.id.name)
        if pipeline is None:
            return rows
        found = live(pipeline, rows)
        return found.drop(pipeline.deleted_column) if pipeline.keeps_deleted else found


def _compared(before: DataFrame, now: DataFrame, on: Sequence[str]) -> DataFrame:
    """Return by what rows are joined that are only in one of two frames, which may differ in columns."""
    names = sorted({name for rows in (before, now) for name in rows.columns if not is_own(name)})

    def told(rows: DataFrame) -> DataFrame:
        # As text: columns with maps in them cannot be compared, nor those that only one of them has.
        there = [F.col(quoted(name)) for name in names if name in rows.columns]
        return rows.select(*_named(rows, on), F.to_json(F.struct(*there)).alias("_esker_content"))

    both = told(before).exceptAll(told(now)).unionByName(told(now).exceptAll(told(before)))
    return both.select(*map(quoted, on))


def _named(rows: DataFrame, names: Sequence[str]) -> list[Column]:
    """Return columns by their names; nulls where rows of an old snapshot have none of that name."""
    there = {name.lower() for name in rows.columns}
    return [(F.col(quoted(name)) if name.lower() in there else F.lit(None)).alias(name) for name in names]


def _places(wanted: Enrichment) -> list[str]:
    return [f"_esker_on{place}" for place in range(len(wanted.on))]
