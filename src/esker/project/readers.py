"""Programs that must be able to read a table, what each of them can read, and what to write so that all can.

What is not known to be readable is not written: a reader whose makers do not say that it reads something is
taken for one that does not. docs/decisions/0027-what-readers-can-read.md has the sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from esker.project.types import Array, Column, Map, Plain, Struct, Type

ReaderName = Literal["athena", "duckdb", "pyiceberg", "redshift", "snowflake", "spark", "trino"]

CODEC = "write.parquet.compression-codec"
DEFAULT_CODEC = "zstd"
_PREFERRED = ("zstd", "snappy", "gzip", "uncompressed")
"""Codecs of Parquet that Esker picks from, best first."""


@dataclass(frozen=True)
class ReaderFacts:
    """What a program reads of what Esker can write."""

    title: str
    why_not_version_3: str | None = None
    formats: tuple[str, ...] = ("parquet",)
    codecs: tuple[str, ...] = _PREFERRED
    """Of Parquet."""
    lacks: tuple[str, ...] = ()
    """Types that it does not read: `uuid`, `fixed`, `map`…"""
    later: str | None = None
    """What newer versions than the one that is meant can do."""


READERS: dict[ReaderName, ReaderFacts] = {
    "athena": ReaderFacts(
        "Athena",
        why_not_version_3="it reads tables of version 1 and 2",
        formats=("parquet", "orc", "avro"),
        lacks=("uuid", "fixed"),
    ),
    "duckdb": ReaderFacts("DuckDB 1.5"),
    "pyiceberg": ReaderFacts("PyIceberg 0.12", formats=("parquet", "orc"), codecs=(*_PREFERRED, "lz4")),
    "redshift": ReaderFacts("Redshift", lacks=("uuid", "fixed")),
    "snowflake": ReaderFacts("Snowflake", lacks=("uuid",)),
    "spark": ReaderFacts(
        "Spark with Iceberg 1.12", formats=("parquet", "orc", "avro"), codecs=(*_PREFERRED, "lz4")
    ),
    "trino": ReaderFacts(
        "Trino 476",
        why_not_version_3="it reads no deletion vectors",
        formats=("parquet", "orc", "avro"),
        codecs=(*_PREFERRED, "lz4"),
        later="Trino reads them from 480 on: leave trino out of readers: where it is that new",
    ),
}
"""By the name that pipelines use."""


@dataclass(frozen=True)
class Encoding:
    """How a table is written."""

    format_version: int
    format: str
    codec: str | None
    """Of Parquet; None for other formats."""
    reasons: tuple[str, ...] = field(default=(), compare=False)
    """Why it is not another one."""

    def __str__(self) -> str:
        files = f"Parquet with {self.codec}" if self.codec is not None else self.format.capitalize()
        return f"format version {self.format_version}, {files}"


@dataclass(frozen=True)
class Unreadable:
    """Something that a reader cannot read, and what to do."""

    key: str
    """Of the pipeline: the one that says so."""
    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}; {self.remedy}"


def contradictions(
    readers: Sequence[ReaderName],
    *,
    format_version: int | None = None,
    format: str | None = None,
    codec: str | None = None,
) -> Iterator[Unreadable]:
    """Yield what one of the readers cannot read of what is said of a table."""
    for name in readers:
        facts = READERS[name]
        if format_version == 3 and facts.why_not_version_3 is not None:
            yield Unreadable(
                "format_version",
                f"{facts.title} cannot read tables of format version 3: {facts.why_not_version_3}",
                facts.later or f"write format_version: 2, or leave {name} out of readers:",
            )
        if format is not None and format not in facts.formats:
            yield Unreadable(
                "format",
                f"{facts.title} reads data files in {_either(facts.formats)}, and not in {format}",
                f"write format: parquet, or leave {name} out of readers:",
            )
        if codec is not None and codec.lower() not in facts.codecs:
            yield Unreadable(
                "properties",
                f"{facts.title} is not known to read {codec} in Parquet; it reads {_either(facts.codecs)}",
                f"write another {CODEC}, or leave {name} out of readers:",
            )


def unreadable_columns(
    readers: Sequence[ReaderName], columns: Iterable[Column]
) -> Iterator[tuple[str, Unreadable]]:
    """Yield columns of types that one of the readers does not know."""
    for column in columns:
        inside = set(_parts(column.type))
        for name in readers:
            facts = READERS[name]
            for kind in facts.lacks:
                if kind in inside:
                    yield (
                        column.name,
                        Unreadable(
                            "columns",
                            f'{facts.title} is not known to read type {kind} of column "{column.name}"',
                            f"give it another type, or leave {name} out of readers:",
                        ),
                    )


def pick(readers: Sequence[ReaderName], *, format_version: int, format: str, codec: str | None) -> Encoding:
    """Return how to write a table that all of the readers can read.

    `codec` is what is said of it, if anything. What is said has been checked for contradictions.
    """
    reasons = [
        f"no format version 3: {facts.title} cannot read it ({facts.why_not_version_3})"
        for facts in map(READERS.__getitem__, readers)
        if facts.why_not_version_3 is not None
    ]
    if format != "parquet":
        return Encoding(format_version, format, None, tuple(reasons))
    common = [name for name in _PREFERRED if all(name in READERS[reader].codecs for reader in readers)]
    return Encoding(format_version, format, codec or (common or [DEFAULT_CODEC])[0], tuple(reasons))


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _parts(kind: Type) -> Iterator[str]:
    match kind:
        case Plain(name, stored):
            yield (stored or name).partition("(")[0]
        case Array(element):
            yield "array"
            yield from _parts(element)
        case Map(key, value):
            yield "map"
            yield from _parts(key)
            yield from _parts(value)
        case Struct(fields):
            yield "struct"
            for each in fields:
                yield from _parts(each.type)
