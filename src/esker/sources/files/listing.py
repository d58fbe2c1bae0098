"""Which files are there: the pattern of a files source, matched against the disk."""

from __future__ import annotations

import glob
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from esker.errors import SourceNotFound, SourceUnreadable
from esker.ledger.loaded_files import FileVersion
from esker.project import Project
from esker.project.sources import FilesSource

_MAGIC = "*?["


@dataclass(frozen=True)
class FoundFile:
    """A file on the disk."""

    version: FileVersion
    location: Path

    @property
    def path(self) -> str:
        """How the file is called in messages and in the record of loaded files."""
        return self.version.path


def list_files(project: Project, pipeline: str, source: FilesSource) -> list[FoundFile]:
    """Return the files that match, ordered by path.

    Paths below the project's folder are kept relative, so that a project may move to another place
    without loading everything again.
    """
    folder = _fixed_part(source.path)
    if not (project.folder / folder).is_dir():
        raise SourceNotFound(pipeline, source.path, str(folder))
    found: dict[str, FoundFile] = {}
    # glob and not Path.glob: only this one follows links to folders and skips hidden names.
    for name in glob.iglob(source.path, root_dir=project.folder, recursive=True):  # noqa: PTH207
        # Spark leaves such files out without a word: they must not count as loaded.
        if any(part.startswith(("_", ".")) and part not in (".", "..") for part in _below(folder, name)):
            continue
        if file := look_at(project, name):
            found[file.path] = file  # two stars may lead to a file twice
    return [found[path] for path in sorted(found)]


def look_at(project: Project, name: str) -> FoundFile | None:
    """Return a file as it is now; None for a folder. Raises SourceUnreadable."""
    location = project.folder / name
    try:
        facts = location.stat()
    except OSError as error:
        raise SourceUnreadable(name, error.strerror or str(error)) from error
    if stat.S_ISDIR(facts.st_mode):
        return None
    if not os.access(location, os.R_OK):
        raise SourceUnreadable(name, "this user may not read it")
    return FoundFile(FileVersion(_recorded(project, name), facts.st_size, facts.st_mtime_ns), location)


def _recorded(project: Project, name: str) -> str:
    """Return the one way to write a file's path, however the pattern is written."""
    folder = os.path.normpath(project.folder)
    full = os.path.normpath(project.folder / name)
    return os.path.relpath(full, folder) if Path(full).is_relative_to(folder) else full


def _fixed_part(pattern: str) -> Path:
    """Return the folder above the first wildcard."""
    fixed = []
    for part in Path(pattern).parts[:-1]:
        if any(character in part for character in _MAGIC):
            break
        fixed.append(part)
    return Path(*fixed)


def _below(folder: Path, name: str) -> tuple[str, ...]:
    return Path(name).relative_to(folder).parts
