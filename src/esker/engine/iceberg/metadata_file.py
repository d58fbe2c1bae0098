"""A metadata file by itself: read, and looked at with Iceberg's own eyes."""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from esker.engine.failures import JvmFailure, causes, first_line
from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.pointers import NotServed, pointers_of
from esker.engine.iceberg.table_files import TableFiles
from esker.engine.session import Engine
from esker.errors import EskerError, MetadataDamaged

_PACKED = b"\x1f\x8b"
_PATIENCE = 3.0
"""Seconds after which a table that is not loaded yet is suspected."""


class MetadataBroken(Exception):
    """A metadata file that nobody can use, and why."""


def read_document(engine: Engine, files: TableFiles, location: str) -> dict[str, Any]:
    """Return what a metadata file says, or raise MetadataBroken."""
    try:
        content = files.read(location)
    except FileNotFoundError:
        raise MetadataBroken("it is not there") from None
    if not content:
        raise MetadataBroken("it is empty")
    try:
        text = (gzip.decompress(content) if content.startswith(_PACKED) else content).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise MetadataBroken(f"it cannot be read: {error}") from None
    return parsed(engine, text)


def parsed(engine: Engine, text: str) -> dict[str, Any]:
    """Return metadata as a document, or raise MetadataBroken where Iceberg refuses it."""
    jvm: Any = engine.spark.sparkContext._jvm
    try:
        document = json.loads(text)
        iceberg(jvm, "TableMetadataParser").fromJson(text)
    except ValueError as error:
        raise MetadataBroken(f"it is no JSON, or cut off: {error}") from None
    except JvmFailure as error:
        cause = causes(error)[-1]
        raise MetadataBroken(f"Iceberg refuses it: {first_line(cause.message) or cause.kind}") from None
    found: dict[str, Any] = document
    return found


def unless_damaged(engine: Engine, catalog: str, table: str, load: Callable[[], Any]) -> Any:
    """Return what `load` does, or raise MetadataDamaged when the table's metadata file is why it fails.

    Some of Iceberg's catalogs read a broken file for a minute and a half, again and again, before they give
    up. So the file is looked at as soon as loading takes unusually long.
    """
    done: Future[Any] = Future()

    def work() -> None:
        try:
            done.set_result(load())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=work, name="esker-load", daemon=True).start()
    try:
        return done.result(_PATIENCE)
    except TimeoutError:
        if (damage := _damage_of(engine, catalog, table)) is not None:
            raise damage from None
        return done.result()
    except JvmFailure as error:
        if causes(error)[0].kind != "NoSuchTableException" and (damage := _damage_of(engine, catalog, table)):
            raise damage from error
        raise


def _damage_of(engine: Engine, catalog: str, table: str) -> MetadataDamaged | None:
    """Return the error for a table that cannot be loaded, if its metadata file is why."""
    try:
        pointer = pointers_of(engine, catalog).read(table)
        if pointer is None or pointer.served is not None:
            return None
        try:
            read_document(engine, pointer.files, pointer.location)
        except MetadataBroken as error:
            return MetadataDamaged(table, pointer.location, str(error))
    except (NotServed, EskerError):
        pass  # the catalog or the store itself is in trouble: that is what is told
    return None
