"""The files that a project consists of: what it must have with it where its folder is not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from esker.project.document import KeyPath, read_document
from esker.project.load import PROJECT_FILE
from esker.project.secrets import MissingVariables, environment, resolve

_NAMING_FILES = (
    *(("contract",), ("transform",), ("transform", "sql")),
    *(("source", "function"), ("source", "resource")),
)
"""Keys of a pipeline, or of a consumer, that name a file of the project."""
_FILE = re.compile(r"\S+\.(sql|py|ya?ml|json)")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_NOT_OURS = (
    "pyvenv.cfg",  # an environment of Python
    "jars.json",  # what `esker export` wrote
    "state-machine.json",
)
"""What tells folders apart whose Python files are not the project's."""


def declarations(folder: Path) -> list[Path]:
    """Return esker.yml, what it names, and the project's Python modules; no data, no keys, nothing hidden.

    They are relative to the folder, and may begin with `..` or be absolute where esker.yml says so.
    """
    return sorted({Path(PROJECT_FILE), *_named(folder), *_modules(folder)})


def _named(folder: Path) -> Iterator[Path]:
    """Yield the files that esker.yml names, in whichever environment."""
    variables = environment(folder)
    for path, text in read_document(folder / PROJECT_FILE, PROJECT_FILE).texts():
        if not _is_naming(path):
            continue
        try:
            name = resolve(text, variables)
        except MissingVariables:
            continue  # of an environment that was not chosen
        if path[-2:-1] == ("source",):
            name = name.rpartition(":")[0]
        name = name.partition("#")[0]
        if _FILE.fullmatch(name) is None:
            continue  # SQL, or a module
        if _PLACEHOLDER.search(name):
            yield from (each.relative_to(folder) for each in folder.glob(_PLACEHOLDER.sub("*", name)))
        elif (folder / name).is_file():
            yield Path(os.path.normpath(name))


def _is_naming(path: KeyPath) -> bool:
    inner = path[2:] if path[0] == "environments" else path
    match inner[:1]:
        case ("defaults",):
            inner = inner[1:]
        case ("pipelines",) | ("consumers",):  # without its consumers, a project cannot be opened
            inner = inner[2:]
        case _:
            return False
    if inner[:1] == ("overrides",):
        inner = inner[2:]
    return inner in _NAMING_FILES


def _modules(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        if any(name in files for name in _NOT_OURS):
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__", "node_modules"))]
        yield from (
            (Path(place) / name).relative_to(folder)
            for name in files
            if name.endswith(".py") and not name.startswith(".")
        )
