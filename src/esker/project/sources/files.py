"""A files source, as users declare it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from esker.project.declaration import MistakeAt, Texts
from esker.project.sources.encodings import java_encoding
from esker.project.sources.source import SourceDeclaration

FileFormat = Literal["csv", "jsonl", "parquet"]

_OWN_OPTIONS = {
    *("mode", "columnnameofcorruptrecord", "header", "sep", "delimiter", "quote", "escape", "enforceschema"),
    *("nullvalue", "multiline", "encoding", "charset", "linesep", "mergeschema", "samplingratio"),
    *("dropfieldifallnull", "schema", "emptyvalue", "unescapedquotehandling", "chartoescapequoteescaping"),
}
_LOSSY_OPTIONS = {
    *("ignorecorruptfiles", "ignoremissingfiles", "pathglobfilter", "modifiedbefore", "modifiedafter"),
    *("recursivefilelookup", "maxcharspercolumn"),
}


class FilesSource(SourceDeclaration):
    """Read files that match a pattern, each exactly once."""

    type: Literal["files"] = "files"
    path: str = Field(
        description="Pattern of the files, relative to the project's folder or absolute. `*` and `?` "
        "match within a name, `**` matches folders. Names that begin with `_` or `.` are left out."
    )
    format: FileFormat = Field(
        description="csv, jsonl (one JSON object a line) or parquet. Files ending in .gz or .bz2 are "
        "unpacked while they are read."
    )
    on_changed: Literal["error", "reload", "ignore"] = Field(
        "error",
        description="What to do when a loaded file's size or modification time differs later: "
        "`error` stops, `reload` loads the whole file again (in `append` mode its earlier rows stay), "
        "`ignore` keeps what was loaded.",
    )
    max_files: int = Field(10_000, ge=1, description="Most files in one batch; more files make more batches.")
    delimiter: str = Field(",", min_length=1, max_length=1, description="CSV: between two values.")
    quote: str = Field('"', max_length=1, description="CSV: around values; empty for none.")
    header: bool = Field(True, description="CSV: the first line names the columns.")
    null_value: str = Field(
        "",
        description="CSV: text that stands for null. By default nothing between two delimiters does; with "
        "another text, nothing is the empty text. In quotes it cannot be told from null, and is refused.",
    )
    multi_line: bool = Field(
        False, description="CSV: quoted values may hold line breaks (a file is then read by one task)."
    )
    encoding: str = Field(
        "UTF-8",
        description="CSV: character set, such as ISO-8859-1 or windows-1252; UTF-16 and UTF-32 need "
        "`multi_line: true`. JSON lines are UTF-8.",
    )
    options: Texts = Field(
        default_factory=dict, description="Further options of Spark's reader, passed on as they are."
    )

    @property
    def reads(self) -> str:
        return self.path

    @field_validator("options")
    @classmethod
    def _harmless(cls, options: dict[str, str]) -> dict[str, str]:
        for key in options:
            if key.lower() in _OWN_OPTIONS:
                raise MistakeAt((key,), f'option "{key}" is set by Esker; use the keys of the source')
            if key.lower() in _LOSSY_OPTIONS:
                raise MistakeAt((key,), f'option "{key}" would leave out rows of files that count as loaded')
        return options

    @field_validator("encoding")
    @classmethod
    def _known(cls, encoding: str) -> str:
        java_encoding(encoding)
        return encoding

    @model_validator(mode="after")
    def _readable(self) -> FilesSource:
        if self.format == "jsonl" and self.java_encoding not in ("UTF-8", "US-ASCII"):
            raise MistakeAt(("encoding",), "JSON lines are UTF-8; convert the files")
        wide = self.java_encoding.startswith(("UTF-16", "UTF-32"))
        if self.format == "csv" and wide and not self.multi_line:
            # Spark looks for the byte of a line break, which is half a character there.
            raise MistakeAt(("encoding",), f"{self.encoding} can be read with multi_line: true only")
        if self.format == "csv" and self.delimiter == self.quote:
            raise MistakeAt(("quote",), "delimiter and quote are the same character")
        return self

    @property
    def java_encoding(self) -> str:
        """What Java calls the encoding."""
        return java_encoding(self.encoding)

    @field_validator("path")
    @classmethod
    def _not_remote(cls, path: str) -> str:
        if "://" in path and not path.startswith("file://"):
            raise ValueError("only local files can be read so far")
        return path.removeprefix("file://")
