"""Which of the files that are there are to be loaded. The same rules apply with Spark and without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from esker.errors import FileChanged
from esker.ledger.file_versions import Compared, FileVersion
from esker.project.sources import FilesSource
from esker.sources.files.found import FoundFile

_SHOWN = 3


def wanted(
    pipeline: str, source: FilesSource, listed: Sequence[FoundFile], found: Compared
) -> list[FoundFile]:
    """Return the files that are to be loaded, as they were listed. Raises FileChanged."""
    changed = [file for file in listed if file.path in found.changed]
    if changed and source.on_changed == "error":
        told = [f'"{f.path}" had {found.changed[f.path]}, now {f.version}' for f in changed[:_SHOWN]]
        raise FileChanged(pipeline, told, len(changed))
    paths = found.fresh | found.changed.keys() if source.on_changed == "reload" else found.fresh
    return [file for file in listed if file.path in paths]


def is_as_loaded(files: Sequence[FoundFile], known: Mapping[str, FileVersion]) -> bool:
    """Tell whether files are, all together, exactly those that were loaded."""
    return {file.path: file.version for file in files} == known
