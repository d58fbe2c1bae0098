"""How metadata files are called: `00007-<uuid>.metadata.json`, or `v7.metadata.json` in folders."""

from __future__ import annotations

import re

_NAME = re.compile(r"(?:v(?P<number>\d+)|(?P<version>\d+)-[^/]*?)(?:\.gz)?\.metadata\.json(?:\.gz)?")


def version_of(location: str) -> int | None:
    """Return the version that a metadata file's name tells; None for another file."""
    found = _NAME.fullmatch(location.rpartition("/")[2])
    return int(found["number"] or found["version"]) if found else None


def is_numbered(location: str) -> bool:
    """Tell whether a name is that of one version alone: of two writers, only one can have it."""
    found = _NAME.fullmatch(location.rpartition("/")[2])
    return found is not None and found["number"] is not None
