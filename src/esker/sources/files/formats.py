"""What every file format can do: check files, tell their columns, and read them as rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame

from esker.project.types import Column
from esker.sources.files.found import FoundFile
from esker.sources.source import Sent, Weight

_MANY_TASKS = 1_000_000
_PACKED = {".gz", ".bz2"}
_PATTERN = re.compile(r"[*?\[\]{}\\]")


class Format(Protocol):
    """How the files of one format are read."""

    def check(self, files: Sequence[FoundFile]) -> None:
        """Raise SourceMalformed or ColumnRefused for what reading would lose or change unseen."""

    def sent(self, files: Sequence[FoundFile]) -> Sent:
        """Return the columns of all these files together."""

    def read(self, files: Sequence[FoundFile], columns: tuple[Column, ...]) -> DataFrame:
        """Return the rows of these files, with ORIGIN, and MALFORMED where a record can be."""

    def weight(self, files: Sequence[FoundFile]) -> Weight:
        """Return how much these files are when they are read."""


def locations(files: Sequence[FoundFile]) -> list[str]:
    """Return the files' paths for Spark, which takes every path as a pattern.

    Characters of patterns are escaped. Switching patterns off (`__globPaths__`) is no way out: Spark
    4.1 then reads other files of the list twice when one name holds such a character.
    """
    return ["file://" + _PATTERN.sub(r"\\\g<0>", str(file.location)) for file in files]


def text_weight(files: Sequence[FoundFile]) -> Weight:
    """Return how much text files are, packed ones as far as one can tell: text shrinks to about a tenth."""
    is_packed = any(_is_packed(file) for file in files)
    size = sum(file.size * (10 if _is_packed(file) else 1) for file in files)
    return Weight(bytes=size, is_text=not is_packed)


def _is_packed(file: FoundFile) -> bool:
    return file.location.suffix.lower() in _PACKED


def filled(files: Sequence[FoundFile]) -> list[FoundFile]:
    """Return the files that hold anything. An empty .gz file is none to those who unpack it."""
    return [file for file in files if file.size > 0]


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of frames, columns matched by name; what a frame lacks is null.

    Halves are put together: one after the other, hundreds of frames make a plan hundreds of levels deep,
    which Spark goes through anew with each of them.
    """
    if len(frames) == 1:
        return frames[0]
    # Spark moves what is done with a union into each of its parts, and compiles it as many times: 40
    # headers took a minute. It does so not beyond a coalesce, which here changes nothing else.
    return _halves(frames).coalesce(_MANY_TASKS)


def _halves(frames: Sequence[DataFrame]) -> DataFrame:
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return _halves(frames[:middle]).unionByName(_halves(frames[middle:]), allowMissingColumns=True)
