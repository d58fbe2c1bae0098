"""Errors that name the pipeline in which they happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from esker.errors import EskerError

_Error = TypeVar("_Error", bound=EskerError)


def named(error: _Error, pipeline: str) -> _Error:
    """Return an error that says in which pipeline it happened, unless it does so already."""
    if error.pipeline is None:
        error.pipeline = pipeline
    return error


@contextmanager
def naming(pipeline: str) -> Iterator[None]:
    """Let all errors inside name a pipeline."""
    try:
        yield
    except EskerError as error:
        named(error, pipeline)
        raise
