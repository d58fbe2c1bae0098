"""Esker: ingestion for Apache Iceberg. `esker.open(".")` is the door for Python programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from esker.functions import reached, source, transform

if TYPE_CHECKING:
    from pathlib import Path

    from esker.pipeline.api import OpenProject

__version__: str

__all__ = ["__version__", "open", "reached", "source", "transform"]


def open(folder: str | Path = ".", env: str | None = None) -> OpenProject:
    """Open the project in a folder. Spark starts with the first thing that needs it.

    Where PySpark is not installed (`pip install 'esker[spark]'`), tables and changes can be read (`scan`,
    `changes`, `reindex_tasks`) and delivered (`deliver`, `run_reindex_task`); all else raises
    SparkNotInstalled.
    """
    # Imported here, because the API brings PySpark along, which `esker --help` must not wait for.
    try:
        from esker.pipeline.api import OpenProject  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "py4j", "duckdb"):
            raise
        from esker.pipeline.reading import ReadingProject  # noqa: PLC0415

        return cast("OpenProject", ReadingProject.at(folder, env))
    return OpenProject.at(folder, env)


if not TYPE_CHECKING:  # for mypy the module has the names above and no others

    def __getattr__(name: str) -> object:
        """Find out the version when somebody asks: reading the package's metadata takes 20 ms."""
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415

            return version("esker")
        if name == "dlt":
            # Not imported above: it takes a second, and need not be installed.
            from importlib import import_module  # noqa: PLC0415

            return import_module("esker.dlt")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
