"""What users import to write functions for Esker: `@esker.source`, `esker.reached`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any


@dataclass(frozen=True)
class Reached:
    """How far a source function is with the rows that it yielded before."""

    position: Any


def reached(position: Any) -> Reached:
    """Return what a source function yields to say how far it is.

    All rows that it yielded before belong to this position, which is any value that JSON has. Once they are
    in the table, the next run hands it to the function as `since`.
    """
    return Reached(position)


class SourceFunction:
    """A function that yields rows, marked as a source. Called, it is the function itself."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        update_wrapper(self, function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)


def source(function: Callable[..., Any]) -> SourceFunction:
    """Mark a function as a source, for pipelines with `source: {type: python, function: …}`.

    It yields, or returns, rows as dictionaries or lists of them, Arrow tables, anything that gives itself as
    Arrow (pandas, polars), or one Spark frame. Of its parameters, `since` is the position that it reached
    last, `spark` the Spark session; all others are the source's `arguments`.
    """
    return SourceFunction(function)
