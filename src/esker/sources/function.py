"""A function of the user's: found by its name, and told by its line when it fails."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from esker.errors import EskerError, FunctionFailed, FunctionNotFound
from esker.functions import SourceFunction


def find_function(place: str, folder: Path) -> Callable[..., Any]:
    """Return a function by `file.py:name`, in a folder, or `module:name`. Raises FunctionNotFound."""
    found = find_object(place, folder, FunctionNotFound)
    if not isinstance(found, SourceFunction):
        raise FunctionNotFound(place, f"{place.rpartition(':')[2]} is not marked with @esker.source.")
    return found.function


def find_object(place: str, folder: Path, missing: Callable[[str, str], EskerError]) -> Any:
    """Return what stands at `file.py:name`, in a folder, or `module:name`, or raise what `missing` makes."""
    where, _, name = place.rpartition(":")
    try:
        module = _file(folder / where) if where.endswith(".py") else import_module(where)
    except FileNotFoundError as error:
        raise missing(place, f"There is no file {where}.") from error
    except Exception as error:
        raise missing(place, f"It cannot be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if found is None:
        raise missing(place, f"There is no {name} in {where}.")
    return found


def _file(path: Path) -> ModuleType:
    """Import a file of the project, anew each time: whoever changes it expects the change."""
    name = f"esker_source_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    module.__dict__["__source_name__"] = path.stem  # dlt looks for settings of resources under this name
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Told:
    """Turns what a user's function raises into FunctionFailed, with the line that raised it."""

    def __init__(self, function: str) -> None:
        self._function = function

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, Exception) or isinstance(error, EskerError):
            return
        last = traceback.extract_tb(trace)[-1]
        line = f"{Path(last.filename).name}, line {last.lineno}"
        raise FunctionFailed(self._function, f"{type(error).__name__}: {error} ({line})") from error
