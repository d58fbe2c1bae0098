"""Write a new project that runs at once, offline."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from esker.errors import ProjectError, ProjectExists
from esker.project.json_schema import json_schema
from esker.project.load import PROJECT_FILE


def write_sample(folder: Path) -> list[Path]:
    """Write the sample project into an empty or new folder; return what was written.

    Raises ProjectExists, or ProjectError where the folder cannot be written.
    """
    found = sorted(item.name for item in folder.iterdir()) if folder.is_dir() else []
    if folder.is_file() or found:
        raise ProjectExists(str(folder), ", ".join(found[:5]) or "a file of that name")
    name = re.sub(r"[^a-z0-9_]", "_", folder.resolve().name.lower()).lstrip("_0123456789")[:63] or "project"
    try:
        return _write(folder, name)
    except OSError as error:
        raise ProjectError(
            f'cannot write to folder "{folder}"',
            reason=f"{error.strerror or error}.",
            remedy="Choose a folder that this user may write to.",
        ) from error


def _write(folder: Path, name: str) -> list[Path]:
    written = []
    for relative, source in _walk(files("esker.project").joinpath("sample"), Path()):
        target = folder / (relative.with_name(".gitignore") if relative.name == "gitignore" else relative)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text(encoding="utf-8")
        target.write_text(text.format(name=name) if relative.name == PROJECT_FILE else text, encoding="utf-8")
        written.append(target)
    schema = folder / "esker.schema.json"
    schema.write_text(json.dumps(json_schema(), indent=2) + "\n", encoding="utf-8")
    return [*written, schema]


def _walk(folder: Traversable, below: Path) -> list[tuple[Path, Traversable]]:
    found = []
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        path = below / item.name
        found += _walk(item, path) if item.is_dir() else [(path, item)]
    return found
