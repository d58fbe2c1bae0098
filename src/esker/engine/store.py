"""Read and write files of tables from this process, without Spark.

Only for what is small: the narrow columns of a lookup, the rows of a small batch. Where this process
cannot reach a table's store, `can_reach` says so, and the work is done by Spark.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from pyarrow import fs


def can_reach(location: str) -> bool:
    """Tell whether files at a location can be read and written from this process."""
    return urlsplit(location).scheme in ("", "file")


def filesystem(location: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a location, and the path in it."""
    parts = urlsplit(location)
    # Iceberg writes `file:/a b`, not `file:///a%20b`: what stands there is the path itself.
    path = location.removeprefix("file:") if parts.scheme == "file" else location
    return fs.LocalFileSystem(), "/" + path.lstrip("/") if parts.scheme == "file" else unquote(path)


def read_bytes(location: str, offset: int = 0, length: int | None = None) -> bytes:
    """Return a file's bytes, or a part of them."""
    files, path = filesystem(location)
    with files.open_input_file(path) as stream:
        content: bytes = stream.read() if length is None else stream.read_at(length, offset)
        return content


def write_bytes(location: str, content: bytes | memoryview) -> None:
    """Write a new file."""
    files, path = filesystem(location)
    files.create_dir(path.rpartition("/")[0], recursive=True)
    with files.open_output_stream(path) as stream:
        stream.write(content)


def exists(location: str) -> bool:
    """Tell whether a file is there."""
    files, path = filesystem(location)
    found: bool = files.get_file_info(path).type == fs.FileType.File
    return found
