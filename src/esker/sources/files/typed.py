"""Files that say what their columns are: Parquet, Avro and ORC."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from esker.engine.compat import metadata_column
from esker.engine.pins import is_spark
from esker.errors import ColumnRefused
from esker.project.sources import FilesSource
from esker.project.types import Column, Struct, columns_as_json, columns_from_json, quoted
from esker.sources.files.formats import locations
from esker.sources.files.found import FoundFile
from esker.sources.files.widening import NoCommonType, fields_of, widen_columns
from esker.sources.source import ORIGIN, Sent, Weight


@dataclass(frozen=True)
class Head:
    """What a file says about itself. Files with equal texts of a schema have the same columns."""

    schema: str
    rows: int
    bytes: int
    """Of all columns, unpacked as far as the file tells."""


@dataclass
class Known:
    """What has been found out about files; one that changes is another file."""

    heads: dict[FoundFile, Head] = field(default_factory=dict)
    columns: dict[str, tuple[Column, ...]] = field(default_factory=dict)
    """Columns that Spark reads from files, by the text of their schema."""


@dataclass(frozen=True)
class TypedFormat(ABC):
    """Reads files with types, also such whose columns differ."""

    spark: SparkSession
    source: FilesSource
    known: Known
    name: ClassVar[str]
    """What Spark calls the format."""

    @abstractmethod
    def read_head(self, file: FoundFile) -> Head:
        """Return a file's head. Raises SourceUnreadable, and ColumnRefused for what Spark cannot keep."""

    def check(self, files: Sequence[FoundFile]) -> None:
        self._columns(files)

    def sent(self, files: Sequence[FoundFile]) -> Sent:
        return Sent(self._columns(files))

    def read(self, files: Sequence[FoundFile], columns: tuple[Column, ...]) -> DataFrame:
        wanted = self._columns(files)
        if not is_spark("3.5"):
            # Spark reads a narrower number as a wider one, and a column that a file lacks as null.
            return self._frame(files, wanted)
        alike: dict[str, list[FoundFile]] = {}
        for file in files:
            alike.setdefault(self._head(file).schema, []).append(file)
        # By position, of rows that are alike by then: unionByName finds no names inside of maps.
        return reduce(DataFrame.union, (self._widened(group, wanted) for group in alike.values()))

    def _widened(self, files: Sequence[FoundFile], wanted: tuple[Column, ...]) -> DataFrame:
        """Return the rows of files with one schema, in columns that are wide enough for others too."""
        own = Struct(self._columns(files))
        rows = self._frame(files, own.fields)
        values = fields_of(lambda name: F.col(quoted(name)), own, Struct(wanted))
        return rows.select(*values, ORIGIN)

    def _frame(self, files: Sequence[FoundFile], columns: tuple[Column, ...]) -> DataFrame:
        schema = StructType.fromJson(columns_as_json(columns))
        reader = self.spark.read.format(self.name).schema(schema).options(**self.source.options)
        frame = reader.load(locations(files))
        path = metadata_column(frame, "_metadata").getField("file_path")
        return frame.select("*", path.alias(ORIGIN))

    def weight(self, files: Sequence[FoundFile]) -> Weight:
        heads = [self._head(file) for file in files]
        return Weight(sum(head.rows for head in heads), sum(head.bytes for head in heads))

    def _columns(self, files: Sequence[FoundFile]) -> tuple[Column, ...]:
        """Return the columns of all files, each wide enough for every file."""
        examples: dict[str, FoundFile] = {}
        with ThreadPoolExecutor(8) as pool:
            for file, head in zip(files, pool.map(self._head, files), strict=True):
                examples.setdefault(head.schema, file)
        columns: tuple[Column, ...] = ()
        for schema, file in examples.items():
            if schema not in self.known.columns:
                self.known.columns[schema] = self._read_columns(file)
            try:
                columns = widen_columns(columns, self.known.columns[schema])
            except NoCommonType as error:
                raise ColumnRefused(
                    file.path,
                    error.path,
                    f"It is {error.other} there and {error.one} in other files of this batch.",
                    "Write it with one type in all files, or load the files into tables of their own.",
                ) from None
        return columns

    def _read_columns(self, file: FoundFile) -> tuple[Column, ...]:
        frame = self.spark.read.format(self.name).options(**self.source.options).load(locations([file]))
        found = columns_from_json(frame.schema.jsonValue())
        return tuple(Column(each.name, each.type) for each in found)

    def _head(self, file: FoundFile) -> Head:
        if file not in self.known.heads:
            self.known.heads[file] = self.read_head(file)
        return self.known.heads[file]


def refuse_twins(file: FoundFile, names: Iterable[str], prefix: str = "") -> None:
    """Raise ColumnRefused for two names beside each other that differ in case only."""
    seen: set[str] = set()
    for each in names:
        name = f"{prefix}{each}"
        if name.lower() in seen:
            raise ColumnRefused(
                file.path, name, "It stands there twice; upper and lower case are one.", "Rename one of them."
            )
        seen.add(name.lower())


def no_time_of_day(file: FoundFile, name: str) -> ColumnRefused:
    """Return the error of a column with times of day."""
    return ColumnRefused(
        file.path,
        name,
        "It holds times of day, for which Iceberg's tables in Spark have no type.",
        "Write it as text, or as a timestamp.",
    )


def no_nanoseconds(file: FoundFile, name: str, how: str = "") -> ColumnRefused:
    """Return the error of a column with times that Spark would cut."""
    return ColumnRefused(
        file.path,
        name,
        "It holds times with nanoseconds; there is room for microseconds.",
        f"Write it with microseconds{how}.",
    )


def no_room_for_digits(file: FoundFile, name: str, digits: int) -> ColumnRefused:
    """Return the error of a column whose numbers are too long."""
    return ColumnRefused(
        file.path, name, f"It has {digits} digits; there is room for 38.", "Write it as text."
    )
