"""What Spark must know of a catalog, whatever its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Binding:
    """Settings below `spark.sql.catalog.<name>.`, the jar they need, and local folders it writes to."""

    settings: Mapping[str, str] = field(repr=False)  # may hold a password
    jar: str
    warehouse: str
    folders: tuple[Path, ...] = ()


def local_location(path: Path) -> str:
    """Return a folder as an Iceberg location.

    Symlinks are resolved, because Iceberg compares locations as text. Nothing is percent-encoded,
    because Hadoop's paths are not decoded.
    """
    return f"file://{path.resolve()}"
