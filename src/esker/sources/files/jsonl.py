"""JSON lines: Spark finds out the types; plain values are then read as text and parsed like those of CSV."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from esker.engine.compat import metadata_column
from esker.errors import ColumnRefused, SourceMalformed
from esker.project.sources import FilesSource
from esker.project.types import (
    Array,
    Column,
    Struct,
    Type,
    columns_as_json,
    columns_as_text,
    columns_from_json,
    quoted,
)
from esker.sources.files.formats import filled, locations, text_weight
from esker.sources.files.found import FoundFile
from esker.sources.files.jsonl_lines import FLAWS, flaw_of, is_read
from esker.sources.files.lines import named, read_lines, refuse_lines
from esker.sources.source import MALFORMED, ORIGIN, RECORD, Sent, Weight

_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class JsonLinesFormat:
    """Reads one JSON object a line."""

    spark: SparkSession
    source: FilesSource
    has_records: bool = False
    """Each line was sent as a record: one that is no object is a bad row, and no sign of a wrong format."""

    def check(self, files: Sequence[FoundFile]) -> None:
        if filled(files):
            lines = read_lines(self.spark, files, line_end="\n")
            refuse_lines(lines, flaw_of(F.col("value"), self.source.options), FLAWS, files)

    def weight(self, files: Sequence[FoundFile]) -> Weight:
        return text_weight(files)

    def sent(self, files: Sequence[FoundFile]) -> Sent:
        if not filled(files):
            return Sent((), is_text=True, is_exact=True)
        # Spark's parser finds values by the exact name, but takes `id` and `ID` as one column when it
        # looks for names. In a session of its own both are found.
        session = self.spark.newSession()
        session.conf.set("spark.sql.caseSensitive", "true")
        # Every line is looked at: a field that only the last line has would otherwise be lost. A field
        # that is null everywhere is left out; it gets a column when a value shows its type.
        options = {"dropFieldIfAllNull": "true", "samplingRatio": "1.0", "mode": "DROPMALFORMED"}
        frame = session.read.format("json").options(lineSep="\n", **options, **self.source.options)
        columns = columns_from_json(frame.load(locations(filled(files))).schema.jsonValue())
        for one, other in _twins(columns):
            self._refuse(one, other, files)
        if not columns and not self.has_records:
            self._check_objects(files)
        return Sent(columns, is_text=True, is_exact=True)

    def read(self, files: Sequence[FoundFile], columns: tuple[Column, ...]) -> DataFrame:
        # Values are read as they stand in the file, and parsed by our own checks: Spark would round
        # decimals and take whole numbers for seconds since 1970.
        wanted = StructType.fromJson(columns_as_json(columns_as_text(columns)))
        fields = [StructField(field.name, field.dataType) for field in wanted.fields]
        schema = StructType([*fields, StructField(MALFORMED, StringType())])
        if not filled(files):
            beside = (StructField(name, StringType()) for name in (RECORD, ORIGIN))
            return self.spark.createDataFrame([], StructType([*schema, *beside]))
        frame = (
            self.spark.read.format("json")
            .schema(schema)
            # No encoding: if one is set, even UTF-8, Spark decodes the file first, no longer has the
            # digits of a number as they stand there, and writes 1.50 as 1.5.
            .options(mode="PERMISSIVE", columnNameOfCorruptRecord=MALFORMED, lineSep="\n")
            .options(**self.source.options)
            .load(locations(filled(files)))
        )
        shown = F.substring(F.col(MALFORMED), 1, _SHOWN_CHARACTERS)
        what = "on one line, or none" if self.source.format == "jsonl" else "or none"
        told = F.concat(F.lit(f"is no JSON object {what} with the table's columns: "), shown)
        path = metadata_column(frame, "_metadata").getField("file_path")
        values = [F.col(quoted(field.name)) for field in fields]
        return frame.select(
            *values, told.alias(MALFORMED), F.col(MALFORMED).alias(RECORD), path.alias(ORIGIN)
        )

    def _check_objects(self, files: Sequence[FoundFile]) -> None:
        """Refuse files without a single object, such as one that is written over many lines."""
        lines = read_lines(self.spark, files, line_end="\n").where(F.trim("value") != "")
        if not lines.where(is_read(F.col("value"), self.source.options)).isEmpty():
            return
        path = metadata_column(lines, "_metadata").getField("file_path")
        if row := lines.select(path.alias("path"), "value").first():
            shown = row.value[:_SHOWN_CHARACTERS]
            is_document = self.source.format == "json"
            raise SourceMalformed(
                named(row.path, files),
                f"no {'element' if is_document else 'line'} of it is a JSON object: {shown}",
                "Write a list of objects."
                if is_document
                else "Write one whole object a line, without line breaks in it: jq -c . does so. A file that "
                "is one list or object as a whole is of format: json.",
            )

    def _refuse(self, one: str, other: str, files: Sequence[FoundFile]) -> None:
        lines = read_lines(self.spark, files, line_end="\n")
        path = metadata_column(lines, "_metadata").getField("file_path")
        # The file is named as a help for people: that the name stands somewhere in it is enough.
        written = json.dumps(other.rpartition(".")[2], ensure_ascii=False)
        row = lines.where(F.col("value").contains(written)).select(path.alias("path")).first()
        raise ColumnRefused(
            named(row.path, files) if row else files[0].path,
            other,
            f'The files of this batch name a column "{one}" and "{other}"; upper and lower case are one.',
            "Write the name alike in all lines.",
        )


def _twins(columns: tuple[Column, ...], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Return names that differ in case only, at any depth."""
    seen: dict[str, str] = {}
    for column in columns:
        name = f"{prefix}{column.name}"
        if name.lower() in seen:
            yield seen[name.lower()], name
        seen[name.lower()] = name
        yield from _twins(_fields(column.type), f"{name}.")


def _fields(kind: Type) -> tuple[Column, ...]:
    match kind:
        case Struct(fields):
            return fields
        case Array(element):
            return _fields(element)
    return ()
