"""The header of an Avro file, and a walk from block to block.

Avro has no footer: a file that was cut looks like a shorter one until a reader meets its end. So the blocks
are counted first, without unpacking them; that reads a few bytes of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

import fastavro

from esker.errors import ColumnRefused, SourceMalformed, SourceUnreadable
from esker.sources.files.found import FoundFile
from esker.sources.files.typed import Head, no_nanoseconds, no_room_for_digits, no_time_of_day, refuse_twins

_HEADER = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": 16}},
        ],
    }
)
_MAGIC = b"Obj\x01"
_PACKED = 5
"""How much packed blocks grow, about."""
_TIMES = ("time-millis", "time-micros")
_NANOSECONDS = ("timestamp-nanos", "local-timestamp-nanos")


def read_header(file: FoundFile) -> Head:
    """Return what an Avro file is. Raises SourceUnreadable, SourceMalformed for one that was cut, and
    ColumnRefused for what Spark would read as something else."""
    try:
        with file.location.open("rb") as stream:
            if stream.read(4) != _MAGIC:
                raise SourceUnreadable(file.path, "it is no Avro file")
            stream.seek(0)
            header: Any = _parsed(file, stream)
            schema = header["meta"]["avro.schema"].decode()
            _check_schema(file, json.loads(schema))
            rows = sum(_blocks(file, stream, header["sync"]))
    except OSError as error:
        raise SourceUnreadable(file.path, error.strerror or str(error)) from error
    is_packed = header["meta"].get("avro.codec", b"null") != b"null"
    return Head(schema, rows, file.size * (_PACKED if is_packed else 1))


def _parsed(file: FoundFile, stream: IO[bytes]) -> Any:
    try:
        return fastavro.schemaless_reader(stream, _HEADER, None)
    except Exception as error:  # whatever the bytes happen to be
        raise SourceMalformed(file.path, f"its header cannot be read: {error}") from error


def _blocks(file: FoundFile, stream: IO[bytes], sync: bytes) -> Iterator[int]:
    """Yield the number of records of each block."""
    while (records := _number(file, stream, may_end=True)) is not None:
        size = _number(file, stream)
        assert size is not None
        stream.seek(size, 1)
        if (mark := stream.read(len(sync))) != sync:
            if len(mark) < len(sync):
                raise _cut(file)
            raise SourceMalformed(file.path, "a block does not end where it says: some bytes were changed")
        yield records


def _number(file: FoundFile, stream: IO[bytes], *, may_end: bool = False) -> int | None:
    """Return a number as Avro writes it; None at the end of the file where that may be."""
    value = shift = 0
    while True:
        byte = stream.read(1)
        if not byte:
            if may_end and shift == 0:
                return None
            raise _cut(file)
        value |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)


def _cut(file: FoundFile) -> SourceMalformed:
    return SourceMalformed(
        file.path, "it ends in the middle of a block: it is not complete", "Write the file anew."
    )


def _check_schema(file: FoundFile, schema: Any) -> None:
    if not (isinstance(schema, dict) and schema.get("type") == "record"):
        raise SourceMalformed(file.path, "its values are no records", "Write records: they become rows.")
    _check(file, schema, "", ())


def _check(file: FoundFile, schema: Any, path: str, inside: tuple[str, ...]) -> None:
    """Raise ColumnRefused for what stands at a path of a schema, or below it."""
    name = path.rstrip(".")
    match schema:
        case str() if schema in inside:
            raise ColumnRefused(
                file.path,
                name,
                "It holds values like itself, without end.",
                "Write it as text, such as JSON.",
            )
        case list():
            for kind in schema:
                _check(file, kind, path, inside)
        case {"type": "record", "fields": fields}:
            refuse_twins(file, (field["name"] for field in fields), path)
            for field in fields:
                _check(file, field["type"], f"{path}{field['name']}.", (*inside, *_names(schema)))
        case {"type": "array", "items": kind} | {"type": "map", "values": kind}:
            _check(file, kind, path, inside)
        case {"logicalType": kind} if kind in _TIMES:
            raise no_time_of_day(file, name)
        case {"logicalType": kind} if kind in _NANOSECONDS:
            raise no_nanoseconds(file, name)
        case {"logicalType": "decimal", "precision": int(digits)} if digits > 38:
            raise no_room_for_digits(file, name, digits)
        case {"type": dict() | list() as kind}:
            _check(file, kind, path, inside)


def _names(record: Any) -> tuple[str, str]:
    """Return the names by which a record may be meant inside itself."""
    return record["name"], f"{record.get('namespace', '')}.{record['name']}"
