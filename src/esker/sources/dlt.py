"""A dlt resource as a source. The state that dlt keeps for it is the position.

dlt changes the state of a resource while rows come, and mostly ahead of them: what it is behind the last
row is true, what it is before need not be. So a run is one batch, published with the last state. Where the
rows come in the order of the cursor, the state is true behind each page, and batches may end there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json import dumps as as_written
from typing import Any
from uuid import uuid4

from esker.engine.iceberg.table import TableId
from esker.errors import FunctionFailed, MissingPackage, ResourceNotFound
from esker.functions import reached
from esker.ledger.entry import Position
from esker.ledger.large_positions import NAMED, LargePositions
from esker.project.sources import DltSource
from esker.project.system_tables import FILES, POSITIONS
from esker.sources.function import Told, find_object
from esker.sources.source import Opening, Slice
from esker.sources.yielding import YieldingReader, is_arrow

try:
    from dlt.common.configuration.container import Container
    from dlt.common.json import json
    from dlt.common.pipeline import StateInjectableContext
    from dlt.extract.incremental import Incremental, IncrementalResourceWrapper
    from dlt.extract.resource import DltResource
    from dlt.extract.source import DltSource as SourceOfDlt
except ModuleNotFoundError:
    raise MissingPackage("dlt", "dlt", "dlt") from None

_SMALL = 2_000
"""Bytes of a state that stand in the ledger itself."""


class DltReader(YieldingReader):
    """Reads what a dlt resource yields."""

    def __init__(self, opening: Opening, source: DltSource) -> None:
        super().__init__(opening, source, source.resource)
        self._declared = source
        self._large: dict[str, str] = {}
        """States that are to be written beside the table, by the name that the position gives them."""

    @classmethod
    def of(cls, opening: Opening) -> DltReader:
        source = opening.pipeline.source
        assert isinstance(source, DltSource)
        return cls(opening, source)

    def record(self, piece: Slice, run: str) -> None:
        name = _kept(piece.end)
        if name is not None and name in self._large:
            self._positions.record(name, self._large.pop(name), run)

    def published(self, piece: Slice) -> None:
        if (name := _kept(piece.end)) is not None:
            self._positions.forget(name)

    def _call(self, position: Position | None) -> Iterator[Any]:
        resource = self._resource()
        # What a batch of `replace` or `sync` does not hold is gone: it is never only what is new.
        state: dict[str, Any] = {} if self._is_whole else self._restored(position)
        # Injected, or dlt would take the state of whatever pipeline is active, and yield nothing for it.
        with Told(self._place), Container().injectable_context(StateInjectableContext(state=state)):
            items = iter(resource)
        return self._rows(items, resource, state)

    def _rows(
        self, items: Iterator[Any], resource: DltResource | SourceOfDlt, state: dict[str, Any]
    ) -> Iterator[Any]:
        """Yield rows, and how far they are where the state is true."""
        most = None if self._is_whole else self._declared.rows_per_batch
        count, before = 0, ""
        while True:
            try:
                item = next(items)
            except StopIteration:
                break
            except Exception as error:
                # dlt tells that a step failed; the user's own line stands in the cause.
                raise error.__cause__ or error from None
            if most is not None and count >= most and _text(state) != before:
                # The state moved with this row's page: what it was belongs to the rows before.
                yield self._reached(before)
                count = 0
            row = _row(item)
            if most is not None:
                count += 1 if isinstance(row, Mapping) else _size(row)
                if count >= most:
                    _check_order(self._place, resource, state)
                    before = _text(state)
            yield row
        if not self._is_whole:
            yield self._reached(_text(state))

    def _resource(self) -> DltResource | SourceOfDlt:
        """Return what is to be read, or raise ResourceNotFound."""
        place, arguments = self._place, self._declared.arguments
        found = find_object(place, self._opening.engine.project.folder, ResourceNotFound)
        if not isinstance(found, DltResource | SourceOfDlt) or arguments:
            if not callable(found):
                raise ResourceNotFound(place, f"It is a {type(found).__name__}, which gives no rows.")
            with Told(place):
                found = found(**arguments)
        if isinstance(found, DltResource):
            return found
        if not isinstance(found, SourceOfDlt):
            raise ResourceNotFound(place, f"It returns a {type(found).__name__}, which is no dlt resource.")
        names = list(found.resources.selected)
        select = self._declared.select or (names[0] if len(names) == 1 else None)
        if select not in found.resources:
            known = ", ".join(found.resources)
            why = f"The dlt source has no resource {select}" if select else "The dlt source has several"
            raise ResourceNotFound(place, f"{why}: {known}. Name one of them with select:.")
        return found.with_resources(select)

    def _restored(self, position: Position | None) -> dict[str, Any]:
        """Return the state as it was when a position was published."""
        if position is None:
            return {}
        name = _kept(position)
        text = self._positions.read(name) if name is not None else position["reached"]
        found: dict[str, Any] = json.typed_loads(text)
        return found

    def _reached(self, text: str) -> Any:
        """Return a state as a position; a large one only by a name."""
        if len(as_written(text)) <= _SMALL:  # the ledger is JSON as well
            return reached(text)
        name = uuid4().hex[:NAMED]
        self._large[name] = text
        return reached({"kept": name})

    @property
    def _positions(self) -> LargePositions:
        files = self._opening.files_table
        table = TableId(files.catalog, files.name.removesuffix(FILES.ending) + POSITIONS.ending)
        return LargePositions(self._opening.engine, table, self._opening.name)


def _kept(position: Position | None) -> str | None:
    """Return the name of a position that stands beside the table."""
    found = (position or {}).get("reached")
    return found["kept"] if isinstance(found, Mapping) else None


def _text(state: Mapping[str, Any]) -> str:
    """Return a state as text, with its types: dates and decimals come back as such."""
    return str(json.typed_dumps(state, sort_keys=True))


def _row(item: Any) -> Any:
    """Return an item as a row: dlt also takes models of pydantic."""
    return item.model_dump() if hasattr(item, "model_dump") else item


def _size(item: Any) -> int:
    return len(item) if is_arrow(item) or hasattr(item, "__len__") else 1


def _check_order(place: str, resource: DltResource | SourceOfDlt, state: Mapping[str, Any]) -> None:
    """Raise FunctionFailed unless the state is true behind each page."""
    found = resource
    if isinstance(found, SourceOfDlt):
        found = next(iter(found.resources.selected.values()))
    step: Any = found.incremental
    cursor = step.incremental if isinstance(step, IncrementalResourceWrapper) else step
    if found.is_transformer:
        why = "it is a transformer"
    elif (
        not isinstance(cursor, Incremental) or cursor.row_order != "asc" or cursor.last_value_func is not max
    ):
        why = 'it has no dlt.sources.incremental(…, row_order="asc") with the highest value as the last'
    elif cursor.range_start != "closed":
        why = 'of rows with equal values some would be lost: range_start must be "closed"'
    elif _has_more(state):
        why = "it keeps more in its state than how far the cursor is"
    else:
        return
    why = f"rows_per_batch: is set, and {why}. Where a batch may end before the last row is not known."
    raise FunctionFailed(place, why, "Leave rows_per_batch: out; all rows of a run are one batch then.")


def _has_more(state: Mapping[str, Any]) -> bool:
    sources = state.get("sources", {}).values()
    resources = [each for source in sources for each in source.get("resources", {}).values()]
    return any(set(source) - {"resources"} for source in sources) or any(
        set(each) - {"incremental"} for each in resources
    )
