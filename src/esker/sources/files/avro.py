"""Avro files: columns and types come from their headers."""

from __future__ import annotations

from typing import ClassVar

from esker.sources.files.avro_header import read_header
from esker.sources.files.found import FoundFile
from esker.sources.files.typed import Head, TypedFormat


class AvroFormat(TypedFormat):
    """Reads Avro files."""

    name: ClassVar[str] = "avro"

    def read_head(self, file: FoundFile) -> Head:
        return read_header(file)
