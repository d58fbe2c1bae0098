"""Where files of tables lie, as Iceberg writes it."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_local(location: str) -> bool:
    """Tell whether a location is on a disk of this machine."""
    return urlsplit(location).scheme in ("", "file")


def path_of(location: str) -> str:
    """Return the path of a location on a disk of this machine.

    Iceberg writes `file:/a b`, not `file:///a%20b`: a location is the path itself, with a scheme or
    without. A folder such as `city=a%2Fb` has that very name.
    """
    return "/" + location.removeprefix("file:").lstrip("/") if location.startswith("file:") else location
