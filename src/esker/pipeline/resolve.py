"""Publish what became of rows in quarantine: they were loaded again, or are left for good."""

from __future__ import annotations

from pyspark.sql import DataFrame

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.ledger.outbox import drain
from esker.ledger.quarantine import Quarantine
from esker.load.modes.resolve import Resolve
from esker.load.publish import Published, Publisher
from esker.load.standing import standing
from esker.pipeline.tables import quarantine_of


def resolve(engine: Engine, name: str, table: TableId, resolved: DataFrame, run: str) -> None:
    """Publish what became of rows of a quarantine."""
    source = engine.project.pipeline(name).source.fingerprint
    entry, _ = standing(Attempt(engine, table), table, name, source, engine.project.project)
    quarantine = Quarantine.of(engine, quarantine_of(engine.project, table))
    attempt = Attempt(engine, table)
    publisher = Publisher(engine, table, name, source, run, sides={Quarantine.property: quarantine.side})
    change = Resolve((attempt.uuid, attempt.schema_id), quarantine, resolved, name, run)
    position = entry.position if entry is not None else None
    # After a repair or an adoption the outbox does not tell where the log ends: only the log itself does.
    publisher.logged |= drain(engine, table, attempt.properties)
    made = publisher.publish(change, entry, position, before_swap=lambda: None)
    assert isinstance(made, Published)
    drain(engine, table, made.properties)
