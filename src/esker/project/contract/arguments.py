"""The arguments of a library rule. The standard says only that they are keys and values."""

from __future__ import annotations

from typing import Any

from esker.project.contract.options import Mistake
from esker.project.contract.value import is_number
from esker.project.document import KeyPath


class Arguments:
    """What stands below `arguments` of a rule; what is asked for is as it should be, or Mistake is raised."""

    def __init__(self, rule: KeyPath, declared: dict[str, Any]) -> None:
        self._place = (*rule, "arguments")
        self.said = declared.get("arguments") or {}
        if not isinstance(self.said, dict):
            raise Mistake(self._place, "arguments are keys and values")

    def __contains__(self, name: str) -> bool:
        return name in self.said

    def place(self, name: str) -> KeyPath:
        return *self._place, name

    def values(self, name: str) -> list[Any]:
        """Return a list of values, without null: whether a value may be missing is a rule of its own."""
        return plain_values(self.place(name), self.said[name])

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; none if it is not there."""
        found = self.said.get(name)
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise Mistake(self.place(name), f"{name} must be a list of texts")
        return tuple(found)

    def text(self, name: str) -> str:
        if not isinstance(self.said[name], str):
            raise Mistake(self.place(name), f"{name} must be text")
        return str(self.said[name])


def plain_values(place: KeyPath, said: Any) -> list[Any]:
    """Return the values of a list without null, or raise Mistake."""
    if not isinstance(said, list):
        raise Mistake(place, "a list of values is needed here")
    for each in said:
        if each is not None and not isinstance(each, str | bool) and not is_number(each):
            raise Mistake(place, f'"{each}" is no value that a column can have')
    return [each for each in said if each is not None]
