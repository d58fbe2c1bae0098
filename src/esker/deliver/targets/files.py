"""Files of changes, on a disk or in a store: each appears whole, or not at all."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from esker.deliver.targets.content import NotJson, as_json, whole
from esker.deliver.targets.target import Message, Refused, Sender, Target
from esker.engine.buckets import file_system
from esker.errors import TargetUnavailable
from esker.project import Project
from esker.project.secrets import redact, remember_secrets_of
from esker.project.sources.store_address import StoreAddress
from esker.project.stores import FileStore
from esker.project.targets import FilesTarget

_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("op", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("table", pa.string(), nullable=False),
        pa.field("changeset", pa.int64(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("body", pa.string()),
    ]
)


@dataclass(frozen=True)
class FilesFolder(Target):
    """A folder, or a place in a store."""

    lot: ClassVar[int] = 2_000
    declared: FilesTarget
    store: FileStore | None
    folder: Path

    @classmethod
    def of(cls, declared: FilesTarget, project: Project) -> FilesFolder:
        return cls(declared, project.store_connection(declared.connection), project.path(declared.path))

    def open(self) -> Sender:
        remember_secrets_of(self.store)
        return _FilesSender(self)

    def describe(self) -> str:
        return f"folder {self.declared.path}"


class _FilesSender(Sender):
    def __init__(self, target: FilesFolder) -> None:
        self._target = target

    def send(self, messages: Sequence[Message]) -> list[Refused]:
        refused: list[Refused] = []
        taken: list[Message] = []
        lines: list[bytes] = []
        for message in messages:
            try:
                lines.append(as_json(whole(message)) + b"\n")
            except NotJson as error:
                refused.append(Refused(message, str(error)))
            else:
                taken.append(message)
        if not taken:
            return refused
        content = b"".join(lines)
        name = self._name(taken, content)
        try:
            self._write(name, content if self._target.declared.format == "jsonl" else _parquet(taken))
        except OSError as error:
            raise TargetUnavailable(self._target.describe(), redact(str(error)), 1) from error
        return refused

    def _name(self, messages: Sequence[Message], content: bytes) -> str:
        """Return a name that the same changes have each time: what is sent again is there once."""
        changesets = [message.changeset for message in messages]
        digest = hashlib.sha256(content).hexdigest()[:20]
        span = f"{min(changesets):010d}-{max(changesets):010d}"
        return f"{messages[0].table}-{span}-{digest}.{self._target.declared.format}"

    def _write(self, name: str, content: bytes) -> None:
        address = self._target.declared.address
        if address is None:
            _write_to_disk(self._target.folder, name, content)
        else:
            _write_to_store(address, self._target.store, name, content)


def _write_to_disk(folder: Path, name: str, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # Those who read the folder take no file whose name begins with a dot.
    unfinished = folder / f".{name}.{uuid4().hex[:8]}"
    try:
        with unfinished.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(folder / name)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def _write_to_store(address: StoreAddress, store: FileStore | None, name: str, content: bytes) -> None:
    # Stores show an object when all of it is there.
    with file_system(address, store).open_output_stream(f"{address.path}/{name}") as stream:
        stream.write(content)


def _parquet(messages: Sequence[Message]) -> bytes:
    rows = [
        {
            "id": message.id,
            "op": message.op,
            "version": message.version,
            "table": message.table,
            "changeset": message.changeset,
            "key": as_json(dict(message.key)).decode(),
            "body": as_json(message.body).decode() if message.body is not None else None,
        }
        for message in messages
    ]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, _SCHEMA), sink, compression="zstd")
    return sink.getvalue()
