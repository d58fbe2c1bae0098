"""Iceberg's own objects for files that were written in this process, made from JSON.

A builder would be called once for every fact, and each call is a trip to the JVM; and Py4J would hand a
small number over as an int where a long is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from esker.engine.iceberg.java import each, iceberg, json_node
from esker.engine.iceberg.manifests import FileEntry

_CONTENTS = ("data", "position-deletes")


def content_file(
    jvm: Any,
    spec: Any,
    *,
    location: str,
    size: int,
    records: int,
    partition: Sequence[Any] = (),
    content: str = "data",
    format: str = "parquet",
    facts: Mapping[str, Any] | None = None,
) -> Any:
    """Return the object for a file of a partitioning. `facts` are further fields, by Iceberg's names."""
    document = {
        "spec-id": spec.specId(),
        "content": content,
        "file-path": location,
        "file-format": format,
        "partition": _values(spec, partition) if partition else [],
        "file-size-in-bytes": size,
        "record-count": records,
        **(facts or {}),
    }
    return iceberg(jvm, "ContentFileParser").fromJson(json_node(jvm, document), spec)


def stored_file(jvm: Any, spec: Any, file: FileEntry) -> Any:
    """Return the object for a file of the current snapshot, of data or position deletes, with its spec."""
    facts = {
        "referenced-data-file": file.reference,
        "content-offset": file.offset,
        "content-size-in-bytes": file.length,
    }
    return content_file(
        jvm,
        spec,
        location=file.path,
        size=file.size,
        records=file.records,
        partition=tuple(value for _, value in file.partition),
        content=_CONTENTS[file.content],
        format=file.format,
        facts={name: value for name, value in facts.items() if value is not None},
    )


def partition_data(spec: Any, jvm: Any, values: Sequence[Any]) -> Any:
    """Return partition values as Iceberg's own object."""
    return content_file(
        jvm, spec, location="only the partition counts", size=1, records=1, partition=values
    ).partition()


def _values(spec: Any, values: Sequence[Any]) -> list[Any]:
    kinds = [str(field.type().toString()) for field in each(spec.partitionType().fields())]
    return [_as_json(value, kind) for value, kind in zip(values, kinds, strict=True)]


def _as_json(value: Any, kind: str) -> Any:
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
