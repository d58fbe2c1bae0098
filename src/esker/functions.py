"""What users import to write functions for Esker: `@esker.source`, `esker.reached`, `@esker.transform`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, Literal


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


class TransformFunction:
    """A function that makes messages of rows, marked as a transform. Called, it is the function itself."""

    def __init__(self, function: Callable[[Any], Any], per: Literal["row", "batch"]) -> None:
        self.function, self.per = function, per
        update_wrapper(self, function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)


def transform(function: Callable[[Any], Any] | None = None, *, per: Literal["row", "batch"] = "row") -> Any:
    """Mark a function as a transform, for consumers with `transform: file.py:name`.

    It gets a row as a dictionary, and returns the message's body as one, or None for a row that is not
    wanted in the target. With `per="batch"` it gets an Arrow table of rows, and returns one that has the
    columns of the id; rows that it leaves out are not wanted. It runs in Spark's tasks, perhaps twice.
    """
    if function is None:
        return lambda marked: TransformFunction(marked, per)
    return TransformFunction(function, per)
