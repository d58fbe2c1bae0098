"""Which files are there: the pattern of a files source, matched against the disk."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from esker.errors import SourceNotFound, SourceUnreadable
from esker.ledger.file_versions import FileVersion
from esker.project import Project
from esker.project.sources import FilesSource
from esker.sources.files.found import FoundFile
from esker.sources.files.patterns import fixed_part, is_hidden
from esker.sources.files.place import FULL, Place


class LocalDisk(Place):
    """Files in folders of this machine."""

    scheme = "file"
    is_on_disk = True

    def __init__(self, project: Project, pipeline: str, source: FilesSource) -> None:
        self.project, self.pipeline, self.source = project, pipeline, source

    def list(self) -> list[FoundFile]:
        return list_files(self.project, self.pipeline, self.source)

    def now(self, file: FoundFile) -> FileVersion | None:
        if not (self.project.folder / file.path).exists():
            return None
        found = look_at(self.project, file.path)
        return found.version if found is not None else None

    @contextmanager
    def opened(self, file: FoundFile) -> Iterator[IO[bytes]]:
        try:
            with file.location.open("rb") as stream:
                yield stream
        except OSError as error:
            if error.errno in FULL:
                raise
            self.confirm(file)
            raise SourceUnreadable(file.path, error.strerror or str(error)) from error
        self.confirm(file)

    def below_root(self, file: FoundFile) -> str:
        return os.path.abspath(file.location).lstrip("/")  # noqa: PTH100 (without "..")


def list_files(project: Project, pipeline: str, source: FilesSource) -> list[FoundFile]:
    """Return the files that match, ordered by path.

    Paths below the project's folder are kept relative, so that a project may move to another place
    without loading everything again.
    """
    folder = Path(fixed_part(source.path))
    if not (project.folder / folder).is_dir():
        raise SourceNotFound(pipeline, source.path, str(folder))
    found: dict[str, FoundFile] = {}
    # glob and not Path.glob: only this one follows links to folders and skips hidden names.
    for name in glob.iglob(source.path, root_dir=project.folder, recursive=True):  # noqa: PTH207
        # Spark leaves such files out without a word: they must not count as loaded.
        if is_hidden(str(Path(name).relative_to(folder))):
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
