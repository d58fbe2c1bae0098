"""What every file format can do: tell its columns, and read files as rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame

from esker.project.types import Column
from esker.sources.files.listing import FoundFile
from esker.sources.source import Sent

NO_GLOB = {"__globPaths__": "false"}
"""Spark takes `[` and `*` in a given path as a pattern; here every path is a file."""


class Format(Protocol):
    """How the files of one format are read."""

    def sent(self, files: Sequence[FoundFile]) -> Sent:
        """Return the columns of all these files together."""

    def read(self, files: Sequence[FoundFile], columns: tuple[Column, ...]) -> DataFrame:
        """Return the rows of these files, with MALFORMED and ORIGIN."""


def locations(files: Sequence[FoundFile]) -> list[str]:
    """Return the files' paths for Spark."""
    return [f"file://{file.location}" for file in files]
