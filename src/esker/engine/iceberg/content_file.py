"""Files that were written in this process, as Iceberg is told of them: in its own JSON.

A commit takes them over as they are. Where one of Iceberg's objects is needed, it is made from the JSON: a
builder would be called once for every fact, and each call is a trip to the JVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from esker.engine.iceberg.java import each, iceberg, json_node
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.metadata import Spec

_CONTENTS = ("data", "position-deletes")


@dataclass(frozen=True)
class WrittenFile:
    """A file that belongs to no snapshot yet. It can be asked what Iceberg's own object can."""

    document: Mapping[str, Any]
    """The file in Iceberg's JSON."""

    def location(self) -> str:
        return str(self.document["file-path"])

    def fileSizeInBytes(self) -> int:  # noqa: N802
        return int(self.document["file-size-in-bytes"])

    def recordCount(self) -> int:  # noqa: N802
        return int(self.document["record-count"])


def written_file(
    spec: Spec,
    *,
    location: str,
    size: int,
    records: int,
    partition: Sequence[Any] = (),
    content: str = "data",
    format: str = "parquet",
    facts: Mapping[str, Any] | None = None,
) -> WrittenFile:
    """Return a file of a partitioning. `facts` are further fields, by Iceberg's names."""
    kinds = [place.kind for place in spec.places]
    values = [_as_json(value, kind) for value, kind in zip(partition, kinds, strict=bool(partition))]
    return WrittenFile(_document(spec.id, values, location, size, records, content, format, facts))


def stored_file(spec: Spec, file: FileEntry) -> WrittenFile:
    """Return a file of the current snapshot, of data or position deletes, with its spec."""
    facts = {
        "referenced-data-file": file.reference,
        "content-offset": file.offset,
        "content-size-in-bytes": file.length,
    }
    return written_file(
        spec,
        location=file.path,
        size=file.size,
        records=file.records,
        partition=tuple(value for _, value in file.partition),
        content=_CONTENTS[file.content],
        format=file.format,
        facts={name: value for name, value in facts.items() if value is not None},
    )


def content_file(
    jvm: Any,
    spec: Any,
    *,
    location: str,
    size: int,
    records: int,
    partition: Sequence[Any] = (),
    facts: Mapping[str, Any] | None = None,
) -> Any:
    """Return Iceberg's own object for a data file of a partitioning, which is Iceberg's own, too."""
    kinds = (
        [str(field.type().toString()) for field in each(spec.partitionType().fields())] if partition else []
    )
    values = [_as_json(value, kind) for value, kind in zip(partition, kinds, strict=True)]
    document = _document(spec.specId(), values, location, size, records, "data", "parquet", facts)
    return iceberg(jvm, "ContentFileParser").fromJson(json_node(jvm, document), spec)


def as_object(jvm: Any, table: Any, file: Any) -> Any:
    """Return Iceberg's own object for a file of a table, whichever it is."""
    if not isinstance(file, WrittenFile):
        return file
    spec = table.specs().get(file.document["spec-id"])
    return iceberg(jvm, "ContentFileParser").fromJson(json_node(jvm, file.document), spec)


def _document(
    spec_id: int,
    values: Sequence[Any],
    location: str,
    size: int,
    records: int,
    content: str,
    format: str,
    facts: Mapping[str, Any] | None,
) -> dict[str, Any]:
    return {
        "spec-id": spec_id,
        "content": content,
        "file-path": location,
        "file-format": format,
        "partition": list(values),
        "file-size-in-bytes": size,
        "record-count": records,
        **(facts or {}),
    }


def _as_json(value: Any, kind: str | None) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case bytes():
            return value.hex()
        case datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            text = moment.astimezone(UTC).isoformat(timespec="microseconds")
            return text if kind == "timestamptz" else text.removesuffix("+00:00")
        case date():
            return value.isoformat()
    return str(value)
