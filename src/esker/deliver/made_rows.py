"""Rows on their way to a target, ready to be sent: enriched, and as the consumer's SELECT makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.deliver.enrich import Enrichments
from esker.deliver.feed import CHANGE, Subscription
from esker.deliver.sending import ID, UNWANTED
from esker.engine.row_by_row import NotRowByRow
from esker.engine.session import Engine
from esker.engine.tried import FAILED, GIVEN, WANTED, tried
from esker.errors import DeliveryRefused
from esker.ledger.change_log import CHANGESET, OP, ROW
from esker.project.secrets import redact
from esker.project.types import quoted

_TOLD = 400


def in_order(rows: DataFrame) -> DataFrame:
    """Return changes, each partition's in order. Whatever joins them afterwards loses it."""
    return rows.sortWithinPartitions(F.col(CHANGESET), F.col(OP) != "delete", F.col(ROW))


def _last_of_each(ids: Sequence[pa.ChunkedArray]) -> pa.Array:
    """Return the places of each id's last row. By Arrow, which has days that Python does not have."""
    names = [str(place) for place in range(len(ids))]
    found = pa.table([*ids, pa.array(range(len(ids[0])), pa.int64())], [*names, "place"])
    return found.group_by(names).aggregate([("place", "max")]).column("place_max").combine_chunks().sort()


@dataclass(frozen=True)
class MadeRows:
    """Makes rows ready, in this process or with Spark."""

    engine: Engine
    subscription: Subscription
    enrichments: Enrichments

    @property
    def needs_spark(self) -> bool:
        """Rows are joined or computed."""
        return bool(self.enrichments.tables) or self.subscription.consumer.query is not None

    def of_table(self, rows: pa.Table, *, newest: bool) -> pa.Table:
        """Return changes that this process has read: in order, or only the `newest` of each row."""
        is_kept = pc.not_equal(rows.column(OP), "delete")
        rows = rows.append_column("_esker_kept", is_kept)
        order = [(CHANGESET, "ascending"), ("_esker_kept", "ascending"), (ROW, "ascending")]
        rows = rows.sort_by(order).drop_columns(["_esker_kept"])
        ids = [rows.column(name) for name in self.subscription.ids]
        if newest:
            places = _last_of_each(ids)
            rows, ids = rows.take(places), [column.take(places) for column in ids]
        for place, column in enumerate(ids):
            rows = rows.append_column(f"{ID}{place}", column)
        return rows

    def of_frame(self, rows: DataFrame, *, newest: bool) -> DataFrame:
        """Return changes as a frame: each row's in order, or only the `newest` of each row."""
        own = self.subscription
        if newest:
            rows = own.newest(rows)
        rows = self.content(rows)
        if newest:
            return rows
        ids = [F.col(f"{ID}{place}") for place in range(len(own.ids))]
        return in_order(rows.repartition(*ids))

    def content(self, rows: DataFrame) -> DataFrame:
        """Return rows with what the enrichments and the SELECT make of them, and their ids beside."""
        own = self.subscription
        ids = {f"{ID}{place}": F.col(quoted(name)) for place, name in enumerate(own.ids)}
        rows = self.enrichments.added_to(rows.withColumns(ids))
        if own.consumer.query is None:
            return rows
        given = [name for name in rows.columns if own.is_shown(name)]
        try:
            made = tried(self.engine, rows, own.consumer.query, [*CHANGE, *ids], given)
        except NotRowByRow as error:
            why = f"transform: is no plain SELECT … FROM input [WHERE …], but has {error} in it."
            raise DeliveryRefused(own.name, why) from error
        except PySparkException as error:
            told = redact(str(error)).partition("JVM stacktrace")[0].strip()[:_TOLD]
            raise DeliveryRefused(own.name, told) from error
        # Of what is gone, nothing is made: whether that would fail is all the same.
        is_gone = F.col(OP) == "delete"
        is_unwanted = ~is_gone & F.col(FAILED).isNull() & ~F.col(WANTED)
        failed = {name: F.when(~is_gone, F.col(name)) for name in (FAILED, GIVEN)}
        op = {OP: F.when(is_unwanted, UNWANTED).otherwise(F.col(OP))}
        return made.withColumns({**failed, **op}).drop(WANTED)
