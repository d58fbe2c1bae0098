"""Pointers of a catalog of folders: the highest of the numbered metadata files."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from esker.engine.failures import JvmFailure, causes, first_line
from esker.engine.iceberg.metadata_names import newest_numbered
from esker.engine.iceberg.pointers.pointer import NextFile, Pointer, PointerMoved, Pointers
from esker.engine.iceberg.table_files import TableFiles
from esker.errors import StoreNotWritable

_HINT = "version-hint.text"


class HadoopPointers(Pointers):
    """`version-hint.text`, and the metadata files behind the one that it names."""

    def read(self, table: str) -> Pointer | None:
        files, folder = self.files, self._folder(table)
        newest = newest_numbered(files.names(folder), _hint(files, folder))
        return Pointer(f"{folder}/{newest}", files) if newest is not None else None

    def replace(self, table: str, pointer: Pointer, following: NextFile) -> str:
        location = f"{following.folder}/v{following.version}.metadata.json"
        if self.read(table) != pointer:
            raise PointerMoved
        # Not in its place at once: a file that is half written would be the table's metadata.
        scratch = f"{following.folder}/{uuid4()}.tmp"
        pointer.files.write(scratch, following.content)
        self._rename(scratch, location)
        pointer.files.write(f"{following.folder}/{_HINT}", str(following.version).encode())
        return location

    def _rename(self, scratch: str, location: str) -> None:
        """Rename a file, unless there is one of that name: then somebody committed."""
        context: Any = self.engine.spark.sparkContext
        path, conf = self._jvm.org.apache.hadoop.fs.Path, context._jsc.hadoopConfiguration()
        try:
            store = path(location).getFileSystem(conf)
            if store.exists(path(location)) or not store.rename(path(scratch), path(location)):
                raise PointerMoved
        except JvmFailure as error:
            raise StoreNotWritable(location, first_line(causes(error)[-1].message)) from error

    def _folder(self, table: str) -> str:
        warehouse = self.engine.bindings[self.catalog].warehouse
        return f"{warehouse}/{table.replace('.', '/')}/metadata"


def _hint(files: TableFiles, folder: str) -> str | None:
    try:
        return files.read(f"{folder}/{_HINT}").decode()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
