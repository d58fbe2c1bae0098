"""CSV files: every value is text here; the checks give it a type.

Spark takes the header of one file for all and assigns columns by place, so that files whose columns
stand in another order are read wrongly without a word. Here each file's header is read first, and files
with equal headers are read together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from esker.engine.compat import metadata_column
from esker.project.sources import FilesSource
from esker.project.types import Column, Plain
from esker.sources.files.csv_grammar import Grammar
from esker.sources.files.csv_header import Header, read_header
from esker.sources.files.csv_lines import FLAWS, flaw_of
from esker.sources.files.csv_quotes import check_quotes
from esker.sources.files.csv_small import Values, read_values
from esker.sources.files.formats import filled, locations, text_weight, union
from esker.sources.files.found import FoundFile
from esker.sources.files.lines import read_lines, refuse_lines
from esker.sources.source import MALFORMED, ORIGIN, RECORD, Sent, Weight

# Stands for a value that is not there. Spark compares it with values too, so it must never be one.
_NO_VALUE = "\0esker: no value\0"
_REPLACED = "\ufffd"
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class CsvFormat:
    """Reads CSV as RFC 4180 describes it, with the source's delimiter and quote."""

    spark: SparkSession
    source: FilesSource
    declared: tuple[str, ...]
    """Names of the columns when files have no header."""
    headers: dict[FoundFile, Header]
    """Headers that have been read; a file that changes is another one."""

    def values(self, files: Sequence[FoundFile]) -> Values | None:
        return read_values(self._headers(files), self.source)

    def check(self, files: Sequence[FoundFile]) -> None:
        if self.values(files) is not None:
            return  # each line has been read here, and nothing is wrong with any
        if self.source.multi_line:
            for file, header in self._headers(files).items():
                check_quotes(file, self.source, header.line_end)
            return
        # Spark drops a line of blanks. It is a value of the only column, or delimiters that are blanks.
        counting = [
            file
            for file, header in self._headers(files).items()
            if len(header.names) == 1 or self.source.delimiter.isspace()
        ]
        others = [file for file in filled(files) if file not in set(counting)]
        for group, blanks_count in ((counting, True), (others, False)):
            if group:
                lines = read_lines(self.spark, group)
                flaw = flaw_of(F.col("value"), self.source, blanks_count=blanks_count)
                refuse_lines(lines, flaw, FLAWS, group)

    def weight(self, files: Sequence[FoundFile]) -> Weight:
        return text_weight(files)

    def sent(self, files: Sequence[FoundFile]) -> Sent:
        columns = tuple(Column(name, Plain("string")) for name in self._names(files))
        return Sent(columns, is_text=True, is_untyped=True)

    def read(self, files: Sequence[FoundFile], columns: tuple[Column, ...]) -> DataFrame:
        groups: dict[Header, list[FoundFile]] = defaultdict(list)
        for file, header in self._headers(files).items():
            groups[header].append(file)
        if not groups:
            fields = [
                StructField(name, StringType()) for name in (*self._names(files), MALFORMED, RECORD, ORIGIN)
            ]
            return self.spark.createDataFrame([], StructType(fields))
        return union([self._read_group(header, group) for header, group in groups.items()])

    def _read_group(self, header: Header, files: list[FoundFile]) -> DataFrame:
        # Columns are numbered while Spark parses, so that no name of a file can meet one of ours.
        fields = [StructField(f"c{index}", StringType()) for index in range(len(header.names))]
        frame = (
            self.spark.read.format("csv")
            .schema(StructType([*fields, StructField(MALFORMED, StringType())]))
            .options(**self._options(header))
            .load(locations(files))
        )
        named = [self._value(f"c{index}").alias(name) for index, name in enumerate(header.names)]
        path = metadata_column(frame, "_metadata").getField("file_path")
        told = self._malformed(header).alias(MALFORMED)
        return frame.select(*named, told, F.col(MALFORMED).alias(RECORD), path.alias(ORIGIN))

    def _options(self, header: Header) -> dict[str, str]:
        options = {
            "sep": self.source.delimiter,
            "quote": self.source.quote,
            # RFC 4180 writes a quote inside quotes twice; Spark's default is a backslash.
            "escape": self.source.quote or "\0",
            "header": str(self.source.header).lower(),
            "enforceSchema": "true",
            # Spark takes `""` for null too, unless null is written as something else.
            "nullValue": _NO_VALUE,
            "multiLine": str(self.source.multi_line).lower(),
            "encoding": self.source.java_encoding,
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": MALFORMED,
            **self.source.options,
        }
        if self.source.multi_line:
            # Left to find out itself, Spark writes every line break inside quotes as \n.
            options["lineSep"] = header.line_end
        return options

    def _value(self, name: str) -> Expression:
        if not self.source.null_value:
            return F.col(name)
        # Where null is written as a text, nothing at all is the empty text.
        return F.nullif(F.coalesce(F.col(name), F.lit("")), F.lit(self.source.null_value))

    def _malformed(self, header: Header) -> Expression:
        record = F.col(MALFORMED)
        bare = record
        if self.source.quote:
            bare = F.regexp_replace(record, Grammar.of(self.source).quoted, "")
        delimiters = F.length(bare) - F.length(F.replace(bare, F.lit(self.source.delimiter)))
        wanted = len(header.names)
        ragged = F.concat(
            (delimiters + 1).cast("string"),
            F.lit(f" values where {wanted} are expected (another delimiter, quote or multi_line?): "),
            F.substring(record, 1, _SHOWN_CHARACTERS),
        )
        reason = F.when(record.isNotNull(), ragged)
        if self.source.java_encoding.startswith("UTF-"):
            return reason
        # Java writes this sign for bytes that are no character. No other encoding can write it itself.
        values = F.concat_ws("", *(F.col(f"c{index}") for index in range(wanted)))
        unknown = F.concat(F.lit(f"bytes are not {self.source.encoding} (another encoding?): "), values)
        return F.coalesce(reason, F.when(values.contains(_REPLACED), unknown))

    def _names(self, files: Sequence[FoundFile]) -> list[str]:
        """Return the columns of all files; a name in another case is the same name."""
        names: dict[str, str] = {}
        for header in self._headers(files).values():
            for name in header.names:
                names.setdefault(name.lower(), name)
        return list(names.values()) or list(self.declared)

    def _headers(self, files: Sequence[FoundFile]) -> dict[FoundFile, Header]:
        """Return the headers of files that are not empty."""
        unknown = [file for file in filled(files) if file not in self.headers]
        with ThreadPoolExecutor(8) as pool:
            found = pool.map(lambda file: read_header(file, self.source, self.declared), unknown)
            self.headers.update(zip(unknown, found, strict=True))
        # A file of blank lines has no header and no rows.
        return {file: self.headers[file] for file in filled(files) if self.headers[file].names}
