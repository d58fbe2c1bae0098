"""Errors on their way through dlt: it shows people nothing but their text."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from esker.errors import EskerError

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def told(function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Let errors of a function have code, reason and remedy in their text."""

    @wraps(function)
    def call(*arguments: _Given.args, **named: _Given.kwargs) -> _Made:
        try:
            return function(*arguments, **named)
        except EskerError as error:
            lines = (f"{error.code}: {error.message}", error.reason, error.remedy)
            error.args = ("\n".join(line for line in lines if line),)
            raise

    return call
