"""Let go of a consumer that the project no longer declares: its offset, and the tags that keep snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.table import TableId, find_table, named_table
from esker.engine.session import Engine
from esker.errors import ConsumerBusy, ConsumerDeclared
from esker.ledger.consumer_tags import move_tag
from esker.ledger.leases import LeaseTaken, held
from esker.ledger.offsets import forget_offset
from esker.ledger.reindexes import forget_reindex, reindex_tag
from esker.ledger.side_table import LOG, SideTable
from esker.ledger.state import State
from esker.ledger.tag_names import consumer_tag, start_tag
from esker.pipeline.deliver import lease_of
from esker.pipeline.run import Start
from esker.pipeline.tables import table_of
from esker.project import Project


@dataclass(frozen=True)
class ForgottenConsumer:
    """What was kept for a consumer, and is not any more."""

    consumer: str
    had_offset: bool
    """The state database knew how far it was."""
    tables: Sequence[TableId]
    """Tables on which a tag kept snapshots for it."""

    def as_json(self) -> dict[str, Any]:
        return {
            "consumer": self.consumer,
            "had_offset": self.had_offset,
            "tables": [str(table) for table in self.tables],
        }


def forget_consumer(
    project: Project, start: Start, state: State, name: str, tables: Sequence[str] = ()
) -> ForgottenConsumer:
    """Keep nothing for a consumer any more, on these tables and on those that the project knows.

    Its dead letters and what was delivered stay. Stopped half way, it can be done again. Raises
    ConsumerDeclared and ConsumerBusy.
    """
    if name in project.consumers:
        raise ConsumerDeclared(name)
    try:
        with held(state, lease_of(project, name)):
            engine = start()
            had_offset = forget_offset(state, project.state_key, name)
            forget_reindex(state, project.state_key, name)
            tags = [tag(project.state_key, name) for tag in (consumer_tag, start_tag, reindex_tag)]
            # One table after the other, each once: pipelines may share one.
            known = dict.fromkeys(_known(project, tables))
            found = dict.fromkeys(place for table in known for place in _tagged(engine, table, tags))
            for place in found:
                for tag in tags:
                    move_tag(engine, place, tag, None)
    except LeaseTaken as taken:
        raise ConsumerBusy(name, taken.holder) from None
    return ForgottenConsumer(name, had_offset, list(found))


def _known(project: Project, tables: Sequence[str]) -> Iterator[TableId]:
    """Yield tables that consumers may have read: named ones, those of pipelines, and those of enrichments."""
    yield from (named_table(project, name) for name in tables)
    yield from (table_of(project, pipeline) for pipeline in project.pipelines.values())
    for consumer in project.consumers.values():
        yield from (named_table(project, other.table) for other in consumer.enrich.values())


def _tagged(engine: Engine, table: TableId, tags: Sequence[str]) -> Iterator[TableId]:
    """Yield a table and its change log, where one of the tags stands on them."""
    engine.open_catalog(table.catalog)
    if find_table(engine, table) is None:
        return
    attempt = Attempt(engine, table)
    if attempt.tags.keys() & set(tags):
        yield table
    log = SideTable.registered(attempt.properties, LOG, table.catalog)
    if log is not None and Attempt(engine, log.id).tags.keys() & set(tags):
        yield log.id
