"""A files source, as users declare it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from esker.project.declaration import Declaration, MistakeAt, Texts

FileFormat = Literal["csv", "jsonl", "parquet"]

_OWN_OPTIONS = {
    *("mode", "columnnameofcorruptrecord", "header", "sep", "delimiter", "quote", "escape", "enforceschema"),
    *("nullvalue", "multiline", "encoding", "charset", "linesep", "mergeschema", "samplingratio"),
    *("dropfieldifallnull", "schema"),
}
_LOSSY_OPTIONS = {
    *("ignorecorruptfiles", "ignoremissingfiles", "pathglobfilter", "modifiedbefore", "modifiedafter"),
    *("recursivefilelookup", "maxcharspercolumn"),
}


class FilesSource(Declaration):
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
    null_value: str = Field("", description="CSV: text that stands for null.")
    multi_line: bool = Field(
        False, description="CSV: quoted values may hold line breaks (a file is then read by one task)."
    )
    encoding: str = Field("UTF-8", description="CSV and JSON lines: character set.")
    options: Texts = Field(
        default_factory=dict, description="Further options of Spark's reader, passed on as they are."
    )

    @field_validator("options")
    @classmethod
    def _harmless(cls, options: dict[str, str]) -> dict[str, str]:
        for key in options:
            if key.lower() in _OWN_OPTIONS:
                raise MistakeAt((key,), f'option "{key}" is set by Esker; use the keys of the source')
            if key.lower() in _LOSSY_OPTIONS:
                raise MistakeAt((key,), f'option "{key}" would leave out rows of files that count as loaded')
        return options

    @field_validator("path")
    @classmethod
    def _not_remote(cls, path: str) -> str:
        if "://" in path and not path.startswith("file://"):
            raise ValueError("only local files can be read so far")
        return path.removeprefix("file://")
