"""Put together what loads the batches of one run: mode, change log, quarantine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pyspark.sql import DataFrame

from esker.contracts.evolution import find
from esker.engine.iceberg.alter import add_columns
from esker.engine.iceberg.create import NewTable, create
from esker.engine.iceberg.table import TABLE_DEFAULTS, TableId, find_table
from esker.engine.kept import KeptFrames
from esker.engine.session import Engine
from esker.events import Listener, Reached
from esker.ledger.change_log import ChangeLog
from esker.ledger.delete_memory import DeleteMemory, late_property, memory_columns
from esker.ledger.quality import QUALITY_COLUMNS, Quality
from esker.ledger.quarantine import QUARANTINE_COLUMNS, Quarantine
from esker.ledger.side_table import LOG, OpenSide
from esker.load.audits import Audits
from esker.load.batch import Loading
from esker.load.guards import Guards
from esker.load.loader import Loader, Mode
from esker.load.memory import Memory
from esker.load.modes.amend import Amend
from esker.load.modes.append import Append
from esker.load.modes.keyed import Keyed
from esker.load.modes.replace import Replace
from esker.load.publish import Publisher
from esker.pipeline.rules import row_rules
from esker.pipeline.tables import deletes_of, log_of, quality_of, quarantine_of
from esker.project.modes import WHOLE
from esker.project.types import Column
from esker.sources import Reader, Span
from esker.sources.statement import StatementRows

_Side = TypeVar("_Side", bound=OpenSide)


def open_loader(
    engine: Engine,
    name: str,
    columns: tuple[Column, ...],
    source: Reader,
    publisher: Publisher,
    listen: Listener,
    sizes: Callable[[], Sequence[int]],
    span: Span | None = None,
    resolved: DataFrame | None = None,
) -> Loader:
    """Return the loader of a pipeline whose table, with these columns, and change log are there.

    With a `span`, that of a source is loaded again; with `resolved`, rows of the quarantine.
    """
    pipeline = engine.project.pipeline(name)
    kept = KeptFrames(engine)
    is_statement = isinstance(source, StatementRows)
    is_part = resolved is not None or (span is not None and not span.is_full)
    rules = row_rules(engine, name, publisher.table, kept, is_statement=is_statement, is_part=is_part)
    loading = Loading(
        engine,
        name,
        pipeline,
        publisher.table,
        publisher.run,
        kept,
        rules=rules,
        resolved=resolved,
        span=span,
        reached=lambda step: listen(Reached(name, step)),
    )
    is_whole = pipeline.mode in WHOLE or (span is not None and span.is_full)
    contract = engine.project.contract(name)
    guards = Guards(name, str(publisher.table), pipeline, is_whole=is_whole, rules=rules, sizes=sizes)
    audits = Audits(engine, publisher.table)
    if contract is not None and not isinstance(source, StatementRows):
        is_draft = contract.is_draft and resolved is None
        audits = Audits(engine, publisher.table, contract.audits, is_draft)

    def opened(
        kind: type[_Side],
        table: TableId,
        columns: tuple[Column, ...],
        properties: Mapping[str, str] = TABLE_DEFAULTS,
    ) -> _Side:
        present = find_table(engine, table)
        if present is None:
            create(engine, NewTable(table, columns, (), properties))
        elif lacking := [((), column) for column in columns if find(present.columns, column.name) is None]:
            add_columns(engine, table, lacking)
        side = kind.of(engine, table)
        publisher.sides[kind.property] = side.side
        return side

    if contract is not None:
        history = quality_of(engine.project, publisher.table)
        publisher.quality = lambda: opened(Quality, history, QUALITY_COLUMNS)
    quarantine = quarantine_of(engine.project, publisher.table)
    loading = replace(loading, quarantine=lambda: opened(Quarantine, quarantine, QUARANTINE_COLUMNS))
    if not pipeline.is_keyed:
        return Loader(loading, _keyless(loading, source), source, publisher, listen, guards, audits)
    if pipeline.changes:
        log = ChangeLog.of(engine, log_of(engine.project, publisher.table))
        publisher.sides[LOG] = log.side
        loading = replace(loading, log=log)
    deletes = deletes_of(engine.project, publisher.table)
    late, made = pipeline.late, memory_columns(columns, pipeline)
    from_the_first = {**TABLE_DEFAULTS, **late_property(late)}
    memory = Memory(
        known=lambda attempt: DeleteMemory.known(engine, publisher.table, attempt.properties, late),
        open=lambda: opened(DeleteMemory, deletes, made, from_the_first).asked(late),
        late=late,
        longest=max(each.late for each in engine.project.pipelines.values() if each.table == pipeline.table),
    )
    loading = replace(loading, memory=memory)
    return Loader(loading, Keyed(loading), source, publisher, listen, guards, audits)


def _keyless(loading: Loading, source: Reader) -> Mode:
    if isinstance(source, StatementRows):
        return Append(loading) if source.only_adds else Amend(loading)
    return Append(loading) if loading.pipeline.mode == "append" else Replace(loading)
