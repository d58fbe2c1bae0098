"""Rows on their way to a target, ready to be sent: enriched, and as the consumer's SELECT makes them."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.deliver.enrich import Enrichments
from esker.deliver.feed import CHANGE, Subscription
from esker.deliver.sending import ID, UNWANTED
from esker.engine.row_by_row import NotRowByRow
from esker.engine.session import Engine
from esker.engine.tried import tried
from esker.engine.tried_columns import FAILED, GIVEN, WANTED
from esker.errors import DeliveryRefused
from esker.ledger.change_log import CHANGESET, OP, ROW
from esker.project.secrets import redact
from esker.project.types import quoted

_TOLD = 400


def in_order(rows: DataFrame) -> DataFrame:
    """Return changes, each partition's in order. Whatever joins them afterwards loses it."""
    return rows.sortWithinPartitions(F.col(CHANGESET), F.col(OP) != "delete", F.col(ROW))


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
