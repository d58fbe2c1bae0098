"""A Python function as a source."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from esker.errors import FunctionFailed
from esker.ledger.entry import Position
from esker.project.sources import PythonSource
from esker.sources.function import Told, find_function
from esker.sources.source import Opening
from esker.sources.yielding import YieldingReader, is_arrow

_OWN = ("since", "spark")


class PythonReader(YieldingReader):
    """Reads what a function yields."""

    def __init__(self, opening: Opening, source: PythonSource, function: Callable[..., Any]) -> None:
        super().__init__(opening, source, source.function)
        self._arguments, self._function = source.arguments, function

    @classmethod
    def of(cls, opening: Opening) -> PythonReader:
        source = opening.pipeline.source
        assert isinstance(source, PythonSource)
        return cls(opening, source, find_function(source.function, opening.engine.project.folder))

    def _call(self, position: Position | None) -> Iterator[Any]:
        """Call the function; what it yields comes with the first `next`."""
        given = {"since": (position or {}).get("reached"), "spark": self._opening.engine.spark}
        parameters = inspect.signature(self._function).parameters
        own = {name: given[name] for name in _OWN if name in parameters}
        arguments = self._arguments
        try:
            inspect.signature(self._function).bind(**arguments, **own)
        except TypeError as error:
            raise FunctionFailed(self._place, f"It cannot be called like that: {error}.") from error
        with Told(self._place):
            found = self._function(**arguments, **own)
        if found is None:
            raise FunctionFailed(self._place, "It returned nothing: neither rows nor a generator.")
        alone = isinstance(found, Mapping | DataFrame | pa.Table | pa.RecordBatch) or is_arrow(found)
        return iter([found] if alone else found)
