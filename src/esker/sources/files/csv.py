"""CSV files: every value is text here; the checks give it a type.

Spark takes the header of one file for all and assigns columns by place, so that files whose columns
stand in another order are read wrongly without a word. Here each file's header is read first, and files
with equal headers are read together.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from esker.errors import SourceMalformed, SourceUnreadable
from esker.project.sources import FilesSource
from esker.project.types import Column, Plain
from esker.sources.files.formats import locations
from esker.sources.files.listing import FoundFile
from esker.sources.source import MALFORMED, ORIGIN, Sent

_HEADER_LIMIT = 1 << 18
_NO_TEXT = "\0"


@dataclass(frozen=True)
class CsvFormat:
    """Reads CSV as RFC 4180 describes it, with the source's delimiter and quote."""

    spark: SparkSession
    source: FilesSource
    declared: tuple[str, ...]
    """Names of the columns when files have no header."""
    headers: dict[FoundFile, tuple[str, ...]]
    """Headers that have been read; a file that changes is another one."""

    def sent(self, files: Sequence[FoundFile]) -> Sent:
        names = dict.fromkeys(name for header in self._by_header(files) for name in header)
        columns = tuple(Column(name, Plain("string")) for name in names)
        return Sent(columns, is_text=True, is_untyped=True)

    def read(self, files: Sequence[FoundFile], columns: tuple[Column, ...]) -> DataFrame:
        groups = [self._read_group(header, group) for header, group in self._by_header(files).items()]
        return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), groups)

    def _read_group(self, header: tuple[str, ...], files: list[FoundFile]) -> DataFrame:
        # Columns are numbered while Spark parses, so that no name of a file can meet one of ours.
        fields = [StructField(f"c{index}", StringType()) for index in range(len(header))]
        frame = (
            self.spark.read.format("csv")
            .schema(StructType([*fields, StructField(MALFORMED, StringType())]))
            .options(
                sep=self.source.delimiter,
                quote=self.source.quote,
                # RFC 4180 writes a quote inside quotes twice; Spark's default is a backslash.
                escape=self.source.quote or "\0",
                header=str(self.source.header).lower(),
                enforceSchema="true",
                # Spark takes `""` for null too, unless null is written as something else.
                nullValue=self.source.null_value or _NO_TEXT,
                multiLine=str(self.source.multi_line).lower(),
                encoding=self.source.encoding,
                mode="PERMISSIVE",
                columnNameOfCorruptRecord=MALFORMED,
                **self.source.options,
            )
            .load(locations(files))
        )
        named = [F.col(f"c{index}").alias(name) for index, name in enumerate(header)]
        return frame.select(*named, MALFORMED, F.col("_metadata.file_path").alias(ORIGIN))

    def _by_header(self, files: Sequence[FoundFile]) -> dict[tuple[str, ...], list[FoundFile]]:
        if not self.source.header:
            return {self.declared: list(files)}
        groups: dict[tuple[str, ...], list[FoundFile]] = defaultdict(list)
        with ThreadPoolExecutor(8) as pool:
            for file, header in zip(files, pool.map(self._header, files), strict=True):
                if header:  # an empty file has no rows either
                    groups[header].append(file)
        if not groups:
            return {self.declared: list(files)}
        return groups

    def _header(self, file: FoundFile) -> tuple[str, ...]:
        if file not in self.headers:
            names = self._parse_header(file, self._start(file))
            self._check_header(file, names)
            self.headers[file] = names
        return self.headers[file]

    def _start(self, file: FoundFile) -> str:
        """Return the first lines of a file as text."""
        try:
            with pa.input_stream(str(file.location), compression="detect") as stream:
                start = stream.read(_HEADER_LIMIT)
        except (OSError, pa.ArrowException) as error:
            raise SourceUnreadable(file.path, str(error)) from error
        encoding = "utf-8-sig" if self.source.encoding.lower() in ("utf-8", "utf8") else self.source.encoding
        try:
            # Cut in the middle of a character, the last one is left for later.
            decoder = codecs.getincrementaldecoder(encoding)("strict")
            return decoder.decode(start, final=len(start) < _HEADER_LIMIT)
        except (UnicodeDecodeError, LookupError) as error:
            raise SourceMalformed(
                file.path, f"it is not {self.source.encoding}: {error}", "Set source: {encoding: …}."
            ) from error

    def _parse_header(self, file: FoundFile, text: str) -> tuple[str, ...]:
        if not self.source.multi_line:
            # Spark's header is the first line that is not blank, wherever quotes begin and end.
            text = next((line for line in re.split(r"\r\n|\n|\r", text) if line.strip()), "")
        try:
            lines = csv.reader(
                io.StringIO(text, newline=""),
                delimiter=self.source.delimiter,
                quotechar=self.source.quote or None,
                quoting=csv.QUOTE_MINIMAL if self.source.quote else csv.QUOTE_NONE,
            )
            return next((tuple(row) for row in lines if row), ())
        except csv.Error as error:
            raise SourceMalformed(file.path, f"its header cannot be read: {error}") from error

    def _check_header(self, file: FoundFile, names: tuple[str, ...]) -> None:
        seen: dict[str, str] = {}
        for index, name in enumerate(names, start=1):
            if not name.strip():
                raise SourceMalformed(file.path, f"column {index} of its header has no name")
            if name.lower() in seen:
                raise SourceMalformed(
                    file.path, f'its header names column "{name}" twice (upper and lower case are one)'
                )
            seen[name.lower()] = name
