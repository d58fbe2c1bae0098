"""ORC files: columns and types come from their footers."""

from __future__ import annotations

from typing import ClassVar

from esker.sources.files.found import FoundFile
from esker.sources.files.orc_footer import read_footer
from esker.sources.files.typed import Head, TypedFormat


class OrcFormat(TypedFormat):
    """Reads ORC files."""

    name: ClassVar[str] = "orc"

    def read_head(self, file: FoundFile) -> Head:
        return read_footer(file)
