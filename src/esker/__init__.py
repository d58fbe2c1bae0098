"""Esker: ingestion for Apache Iceberg. `esker.open(".")` is the door for Python programs."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from esker.pipeline.api import OpenProject

__version__ = version("esker")

__all__ = ["__version__", "open"]


def open(folder: str | Path = ".", env: str | None = None) -> OpenProject:
    """Open the project in a folder. Spark starts with the first thing that needs it."""
    # Imported here, because the API brings PySpark along, which `esker --help` must not wait for.
    from esker.pipeline.api import OpenProject  # noqa: PLC0415

    return OpenProject.at(folder, env)
