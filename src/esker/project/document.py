"""YAML as plain values that remember where in the file they stand."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from esker.errors import InvalidYaml, Problem
from esker.project.secrets import redact

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Mark:
    """Line and column in a file, both counted from 1."""

    line: int
    column: int


@dataclass
class Document:
    """The values of a file, and the place of each."""

    file: str
    data: dict[str, Any]
    marks: dict[KeyPath, Mark] = field(default_factory=dict)

    def mark(self, path: KeyPath) -> Mark | None:
        """Return the place of a value, or of the nearest value around it."""
        for length in range(len(path), 0, -1):
            if found := self.marks.get(path[:length]):
                return found
        return None

    def problem(self, path: KeyPath, message: str, remedy: str = "") -> Problem:
        """Return a problem that points at a value."""
        mark = self.mark(path)
        return Problem(
            message=redact(message),
            file=self.file,
            line=mark.line if mark else None,
            column=mark.column if mark else None,
            path=".".join(str(part) for part in path),
            remedy=remedy,
        )

    def overlay(self, onto: KeyPath, upper: KeyPath) -> None:
        """Lay the map at `upper` over the map at `onto`; the upper one's values win.

        Maps are merged key by key. A map with another `type` replaces the whole one below it, because
        the keys of one kind mean nothing to another.
        """
        target, source = self.at(onto), self.at(upper)
        for key in source if isinstance(source, dict) else ():
            if _same_kind(target.get(key), source[key]):
                self.overlay((*onto, key), (*upper, key))
            else:
                self._copy((*upper, key), (*onto, key))

    def underlay(self, onto: KeyPath, lower: KeyPath) -> None:
        """Lay the map at `lower` under the map at `onto`: only what is missing there is taken."""
        target, source = self.at(onto), self.at(lower)
        for key in source if isinstance(source, dict) else ():
            if _same_kind(target.get(key), source[key]):
                self.underlay((*onto, key), (*lower, key))
            elif key not in target:
                self._copy((*lower, key), (*onto, key))

    def at(self, path: KeyPath) -> Any:
        """Return the value at a path; None where there is none."""
        value: Any = self.data
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def texts(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield every text of the document with its path."""
        yield from _texts((), self.data)

    def put(self, path: KeyPath, value: Any) -> None:
        """Replace the value at a path."""
        self.at(path[:-1])[path[-1]] = value

    def _copy(self, source: KeyPath, target: KeyPath) -> None:
        self.put(target, deepcopy(self.at(source)))
        for path in [path for path in self.marks if path[: len(target)] == target]:
            del self.marks[path]
        for path, mark in list(self.marks.items()):
            if path[: len(source)] == source:
                self.marks[target + path[len(source) :]] = mark


def read_document(path: Path, shown_as: str) -> Document:
    """Read a YAML file, or raise InvalidYaml with line and column."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidYaml(Problem(f"cannot be read: {error}", file=shown_as)) from error
    try:
        root = YAML(typ="rt").load(text)
    except DuplicateKeyError as error:
        key = str(error.problem).split('"')[1] if error.problem and '"' in str(error.problem) else ""
        raise InvalidYaml(_at(error, shown_as, f'key "{key}" stands here twice')) from error
    except MarkedYAMLError as error:
        raise InvalidYaml(_at(error, shown_as, _plain_problem(error))) from error
    except YAMLError as error:
        raise InvalidYaml(Problem(str(error), file=shown_as)) from error
    document = Document(shown_as, {})
    if root is None:
        return document
    if not isinstance(root, CommentedMap):
        raise InvalidYaml(Problem("expected keys and values", file=shown_as, line=1, column=1))
    document.data = _plain(root, (), document.marks)
    return document


def _at(error: MarkedYAMLError, shown_as: str, message: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    return Problem(
        message,
        file=shown_as,
        line=mark.line + 1 if mark else None,
        column=mark.column + 1 if mark else None,
    )


def _plain_problem(error: MarkedYAMLError) -> str:
    text = ", ".join(str(part) for part in (error.context, error.problem) if part)
    if "\\t" in text or "tab" in text.lower():
        return "a tab stands here; YAML indents with spaces"
    return text or "not valid YAML"


def _plain(node: Any, path: KeyPath, marks: dict[KeyPath, Mark]) -> Any:
    if isinstance(node, CommentedMap):
        values = {}
        for key, value in node.items():
            try:
                line, column = node.lc.key(key)
                marks[*path, str(key)] = Mark(line + 1, column + 1)
            except KeyError:
                pass  # a key that came in through a YAML merge has no place of its own
            values[str(key)] = _plain(value, (*path, str(key)), marks)
        return values
    if isinstance(node, CommentedSeq):
        items = []
        for index, value in enumerate(node):
            line, column = node.lc.item(index)
            marks[*path, index] = Mark(line + 1, column + 1)
            items.append(_plain(value, (*path, index), marks))
        return items
    # The round-trip loader has classes of its own for quoted text and formatted numbers.
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def _same_kind(lower: Any, upper: Any) -> bool:
    """Tell whether two values are maps that can be merged."""
    if not (isinstance(lower, dict) and isinstance(upper, dict)):
        return False
    return "type" not in lower or "type" not in upper or bool(lower["type"] == upper["type"])


def _texts(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts((*path, key), inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts((*path, index), inner)
