"""How metadata files are called: `00007-<uuid>.metadata.json`, or `v7.metadata.json` in folders."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAME = re.compile(r"(?:v(?P<number>\d+)|(?P<version>\d+)-[^/]*?)(?:\.gz)?\.metadata\.json(?:\.gz)?")


def version_of(location: str) -> int | None:
    """Return the version that a metadata file's name tells; None for another file."""
    found = _NAME.fullmatch(location.rpartition("/")[2])
    return int(found["number"] or found["version"]) if found else None


def is_numbered(location: str) -> bool:
    """Tell whether a name is that of one version alone: of two writers, only one can have it."""
    found = _NAME.fullmatch(location.rpartition("/")[2])
    return found is not None and found["number"] is not None


def newest_numbered(names: Iterable[str], hint: str | None) -> str | None:
    """Return the name of the newest metadata file in a catalog of folders; None when there is none.

    `hint` is what `version-hint.text` says; the file that it names need not be among the names.
    """
    # Writers leave scratch files there whose names may tell a version, too.
    numbered = {version_of(name) or 0: name for name in names if is_numbered(name)}
    told = int(hint.strip()) if hint is not None and hint.strip().isdecimal() else 0
    version = told or max(numbered, default=0)
    if not version:
        return None
    while version in numbered and version + 1 in numbered:
        version += 1  # the hint is written last, and may be of the past
    return numbered.get(version, f"v{version}.metadata.json")
