"""Columns in folders: `country=NL/day=2026-01-02/orders.parquet`, as Hive and Spark write them.

The values are texts, and are parsed as the types of their columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import try_url_decode
from esker.errors import ColumnRefused, PartitionMissing
from esker.project.types import Column, Plain
from esker.sources.files.formats import Format
from esker.sources.files.found import FoundFile
from esker.sources.source import ORIGIN, Sent, Weight

_NULL = "__HIVE_DEFAULT_PARTITION__"
_FOLDER = re.compile(r"(?:^|(?<=/))([^/=]+)=([^/]*)(?=/)")
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Partitioned:
    """Reads files of a format, with columns from their folders beside those in them."""

    inner: Format
    names: tuple[str, ...] | None
    """Which folders are columns; None for all."""

    def check(self, files: Sequence[FoundFile]) -> None:
        self._names(files)
        self.inner.check(files)

    def sent(self, files: Sequence[FoundFile]) -> Sent:
        sent = self.inner.sent(files)
        names = self._names(files)
        inside = {column.name.lower() for column in sent.columns}
        for name in names:
            if name.lower() in inside:
                raise ColumnRefused(
                    files[0].path,
                    name,
                    "It stands in the files of this batch too, and the folder may say something else.",
                    "Name only those folders that are not columns of the files: partitions: […].",
                )
        columns = (*sent.columns, *(Column(name, Plain("string")) for name in names))
        return replace(sent, columns=columns, untyped=(*sent.untyped, *names))

    def read(self, files: Sequence[FoundFile], columns: tuple[Column, ...]) -> DataFrame:
        names = self._names(files)
        known = {name.lower() for name in names}
        others = tuple(column for column in columns if column.name.lower() not in known)
        frame = self.inner.read(files, others)
        return frame.withColumns({name: _value(F.col(ORIGIN), name) for name in names})

    def weight(self, files: Sequence[FoundFile]) -> Weight:
        return self.inner.weight(files)

    def _names(self, files: Sequence[FoundFile]) -> tuple[str, ...]:
        """Return the columns in the files' folders. Raises PartitionMissing or ColumnRefused."""
        if self.names is not None:
            for file in files:
                found = {name.lower() for name in folders_of(file.path)}
                for name in self.names:
                    if name.lower() not in found:
                        raise PartitionMissing(
                            file.path, name, f"The source declares partitions: [{', '.join(self.names)}]."
                        )
            return self.names
        if not files:
            return ()
        first = folders_of(files[0].path)
        for file in files:
            found = {name.lower() for name in folders_of(file.path)}
            wanted = {name.lower(): name for name in first}
            if odd := sorted(found ^ wanted.keys()):
                lacking, other = (file, files[0]) if odd[0] in wanted else (files[0], file)
                raise PartitionMissing(lacking.path, odd[0], f'"{other.path}" is in one.')
        for name in first:
            if not _NAME.fullmatch(name):
                raise ColumnRefused(
                    files[0].path,
                    name,
                    "The name of a folder cannot be that of a column.",
                    "Name the folders that are columns: partitions: […].",
                )
        return tuple(first)


def folders_of(path: str) -> dict[str, str]:
    """Return the folders `name=value` of a path, by name. Raises ColumnRefused for one name twice."""
    found: dict[str, str] = {}
    for match in _FOLDER.finditer(path.partition("://")[2] or path):
        name = unquote(match[1])
        if name.lower() in (known.lower() for known in found):
            raise ColumnRefused(
                path, name, "Two folders of its path have this name.", "Rename one of the folders."
            )
        found[name] = unquote(match[2])
    return found


def _value(address: Expression, name: str) -> Expression:
    """Return the text of a folder, from a file's address as Spark writes it."""
    # The last folder of the name: one above the source's own may have it too.
    folder = rf"(?i)^.*/{re.escape(name)}=([^/]*)/.*$"
    written = F.regexp_extract(address, folder, 1)
    # Once as Spark writes addresses, once as Hive writes what no folder can be called.
    text = _decoded(_decoded(written))
    return F.when(text != _NULL, text)


def _decoded(text: Expression) -> Expression:
    plain = F.replace(text, F.lit("+"), F.lit("%2B"))
    return F.when(text.contains("%"), F.coalesce(try_url_decode(plain), text)).otherwise(text)
