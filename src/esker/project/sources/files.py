"""A files source, as users declare it."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from esker.project.declaration import MistakeAt, Name, Size, Texts
from esker.project.sources.encodings import java_encoding
from esker.project.sources.source import SourceDeclaration
from esker.project.sources.store_address import StoreAddress, store_address

FileFormat = Literal["csv", "jsonl", "json", "parquet", "avro", "orc", "xml"]
_FOLDER_NAME = re.compile(r"[^\W\d]\w*")

_OWN_OPTIONS = {
    *("mode", "columnnameofcorruptrecord", "header", "sep", "delimiter", "quote", "escape", "enforceschema"),
    *("nullvalue", "multiline", "encoding", "charset", "linesep", "mergeschema", "samplingratio"),
    *("rowtag", "inferschema"),
    *("dropfieldifallnull", "schema", "emptyvalue", "unescapedquotehandling", "chartoescapequoteescaping"),
}
_LOSSY_OPTIONS = {
    *("ignorecorruptfiles", "ignoremissingfiles", "pathglobfilter", "modifiedbefore", "modifiedafter"),
    *("recursivefilelookup", "maxcharspercolumn", "avroschema", "avroschemaurl", "recursivefieldmaxdepth"),
}


class FilesSource(SourceDeclaration):
    """Read files that match a pattern, each exactly once."""

    type: Literal["files"] = "files"
    path: str = Field(
        description="Pattern of the files, relative to the project's folder or absolute, or in a store: "
        "`s3://bucket/orders/*.csv`, `gs://…`, `abfss://container@account.dfs.core.windows.net/…`, "
        "`az://container/…`. `*` and `?` match within a name, `**` matches folders. Names that begin with "
        "`_` or `.` are left out."
    )
    format: FileFormat = Field(
        description="csv, jsonl (one JSON object a line), json (a file is one list of objects, or one "
        "object), parquet, avro, orc or xml. Text files ending in .gz, .bz2, .zst or .lz4 are unpacked."
    )
    connection: Name | None = Field(
        None,
        description="The store's connection, with its keys. Default: what the environment, the profile or "
        "the machine says.",
    )
    row_tag: str | None = Field(None, min_length=1, description="XML: the element that is a row.")
    partitions: bool | tuple[str, ...] = Field(
        False,
        description="Columns in folders such as `country=NL/`: `true` for all of them, or their names.",
    )
    on_changed: Literal["error", "reload", "ignore"] = Field(
        "error",
        description="What to do when a loaded file's size or modification time differs later: "
        "`error` stops, `reload` loads the whole file again (in `append` mode its earlier rows stay), "
        "`ignore` keeps what was loaded.",
    )
    max_files: int = Field(10_000, ge=1, description="Most files in one batch; more files make more batches.")
    max_bytes: Annotated[Size, Field(ge=1)] | None = Field(
        None,
        description="Most bytes of files in one batch, such as 1GB; a larger file is a batch of its own. "
        "Default: no limit on a disk; 4GiB where files are copied first (stores, json, .zst, .lz4).",
    )
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

    @field_validator("partitions", mode="before")
    @classmethod
    def _names_of_folders(cls, partitions: object) -> object:
        if isinstance(partitions, bool):
            return partitions
        if not isinstance(partitions, list | tuple) or not partitions:
            raise ValueError("write true, or the names of folders: [country, day]")
        for index, name in enumerate(partitions):
            if not isinstance(name, str) or not _FOLDER_NAME.fullmatch(name):
                raise MistakeAt((index,), f'"{name}" is no name of letters, digits and _; rename the folders')
        return partitions

    @field_validator("encoding")
    @classmethod
    def _known(cls, encoding: str) -> str:
        java_encoding(encoding)
        return encoding

    @model_validator(mode="after")
    def _readable(self) -> FilesSource:
        if self.format in ("jsonl", "json") and self.java_encoding not in ("UTF-8", "US-ASCII"):
            raise MistakeAt(
                ("encoding",),
                "JSON lines are UTF-8; convert the files"
                if self.format == "jsonl"
                else "JSON is UTF-8; convert it",
            )
        wide = self.java_encoding.startswith(("UTF-16", "UTF-32"))
        if self.format == "csv" and wide and not self.multi_line:
            # Spark looks for the byte of a line break, which is half a character there.
            raise MistakeAt(("encoding",), f"{self.encoding} can be read with multi_line: true only")
        if self.format == "csv" and self.delimiter == self.quote:
            raise MistakeAt(("quote",), "delimiter and quote are the same character")
        if (self.format == "xml") != (self.row_tag is not None):
            raise MistakeAt(
                ("row_tag",) if self.row_tag is not None else ("format",),
                "xml needs row_tag:, the element that is a row"
                if self.row_tag is None
                else "row_tag has a meaning for format: xml only",
            )
        if self.connection is not None and self.address is None:
            raise MistakeAt(("connection",), "files on a disk need no connection; write path: s3://…")
        is_azure = self.address is not None and self.address.kind == "azure"
        if is_azure and self.connection is None and self.address and self.address.account is None:
            raise MistakeAt(("path",), "say which account: connection:, or abfss://container@account…")
        return self

    @property
    def address(self) -> StoreAddress | None:
        """Where in a store the files are; None for a disk."""
        return store_address(self.path)

    @property
    def jars(self) -> tuple[str, ...]:
        return ("avro",) if self.format == "avro" else ()

    @property
    def java_encoding(self) -> str:
        """What Java calls the encoding."""
        return java_encoding(self.encoding)

    @field_validator("path")
    @classmethod
    def _known_place(cls, path: str) -> str:
        store_address(path)
        return path.removeprefix("file://")
