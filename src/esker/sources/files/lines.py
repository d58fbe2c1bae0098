"""Look at the raw lines of text files before they are parsed.

Spark's parsers repair what they can: they close open quotes, drop what follows a value, and write `?` for
bytes that are no text. What they hand on no longer shows it, so the lines are looked at first, by Spark too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from esker.engine.compat import make_valid_utf8, metadata_column
from esker.errors import SourceMalformed
from esker.sources.files.formats import filled, locations
from esker.sources.files.found import FoundFile

_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class Flaw:
    """Something in a line that would be lost or changed: why, and what to do."""

    why: str
    remedy: str


def read_lines(spark: SparkSession, files: Sequence[FoundFile], line_end: str | None = None) -> DataFrame:
    """Return the lines of files as column `value`, with the bytes that stand there."""
    options = {} if line_end is None else {"lineSep": line_end}
    return spark.read.format("text").options(**options).load(locations(filled(files)))


def refuse_lines(
    lines: DataFrame, flaw: Expression, flaws: Mapping[str, Flaw], files: Sequence[FoundFile]
) -> None:
    """Raise SourceMalformed for the first file with a line for which `flaw` is a key of `flaws`."""
    path = metadata_column(lines, "_metadata").getField("file_path")
    shown = make_valid_utf8(F.substring("value", 1, _SHOWN_CHARACTERS))
    found = (
        lines.select(path.alias("path"), flaw.alias("flaw"), shown.alias("line"))
        .where(F.col("flaw").isNotNull())
        .groupBy("path", "flaw")
        .agg(F.count("*").alias("lines"), F.min("line").alias("line"))
        .orderBy("path", "flaw")
        .first()
    )
    if found is not None:
        known = flaws[found.flaw]
        noun = "line" if found.lines == 1 else "lines"
        raise SourceMalformed(
            named(found.path, files), f"{known.why} ({found.lines} {noun}): {found.line}", known.remedy
        )


def named(path: str, files: Sequence[FoundFile]) -> str:
    """Return what a file is called in messages, from Spark's way to write its path."""
    location = Path("/" + unquote(path).removeprefix("file:").lstrip("/"))
    return next((file.path for file in files if file.location == location), str(location))
