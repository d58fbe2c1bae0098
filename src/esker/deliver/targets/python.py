"""A Python function of the user's."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esker.deliver.targets.target import Message, Refused, Sender, Target
from esker.errors import EskerError, TargetFunctionFailed, TargetFunctionNotFound
from esker.project import Project
from esker.project.secrets import redact
from esker.project.targets import PythonTarget
from esker.sources.function import find_object


@dataclass(frozen=True)
class PythonFunction(Target):
    """A function that is called with messages."""

    declared: PythonTarget
    folder: Path

    @classmethod
    def of(cls, declared: PythonTarget, project: Project) -> PythonFunction:
        return cls(declared, project.folder)

    def open(self) -> Sender:
        place = self.declared.function
        found = find_object(place, self.folder, TargetFunctionNotFound)
        if not callable(found):
            raise TargetFunctionNotFound(place, f"{place.rpartition(':')[2]} is no function.")
        return _FunctionSender(self.declared, found)

    def describe(self) -> str:
        return f"function {self.declared.function}"


class _FunctionSender(Sender):
    def __init__(self, declared: PythonTarget, function: Callable[..., Any]) -> None:
        self._declared, self._function = declared, function

    def send(self, messages: Sequence[Message]) -> list[Refused]:
        if not messages:
            return []
        try:
            told = self._function(list(messages), **self._declared.arguments)
        except EskerError:
            raise
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            why = f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"
            raise TargetFunctionFailed(self._declared.function, redact(why)) from error
        return self._refused(messages, told)

    def _refused(self, messages: Sequence[Message], told: Any) -> list[Refused]:
        if told is None:
            return []
        if not isinstance(told, Mapping):
            why = f"It returned {type(told).__name__}, not None or a dictionary of refused ids with reasons."
            raise TargetFunctionFailed(self._declared.function, why)
        if unknown := set(told) - {message.id for message in messages}:
            why = f"It refuses an id that it was not given: {min(map(repr, unknown))}."
            raise TargetFunctionFailed(self._declared.function, why)
        return [Refused(each, redact(str(told[each.id]))) for each in messages if each.id in told]
