"""How files are packed, told by the end of their names."""

from __future__ import annotations

from pathlib import PurePosixPath

from esker.errors import PackingUnknown

_BY_SPARK = {".gz": "gzip", ".bz2": "bz2"}
"""Spark unpacks them while it reads."""
_BY_ESKER = {".zst": "zstd", ".lz4": "lz4"}
"""Without Hadoop's native library Spark reads no zstd, and never an lz4 file as others write it."""
_BY_NOBODY = (
    *(".xz", ".lzma", ".zip", ".7z", ".rar", ".z", ".br", ".snappy", ".sz", ".lzo", ".deflate"),
    *(".tar", ".tgz", ".tbz2"),
)
TEXT_FORMATS = ("csv", "jsonl", "json", "xml")
"""Formats whose files may be packed as a whole; the others pack what is inside."""


def packing_of(path: str) -> str | None:
    """Return how a text file is packed, as Arrow calls it; None for one that is not.

    Raises PackingUnknown for what nobody here can unpack.
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _BY_NOBODY:
        raise PackingUnknown(path, suffix)
    return _BY_SPARK.get(suffix) or _BY_ESKER.get(suffix)


def refuse_packed(path: str, file_format: str) -> None:
    """Raise PackingUnknown for a packed file of a format that has its own way to pack."""
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in (*_BY_SPARK, *_BY_ESKER, *_BY_NOBODY):
        raise PackingUnknown(path, suffix, file_format)


def is_left_to_spark(path: str) -> bool:
    """Tell whether Spark can read a text file as it is packed."""
    suffix = PurePosixPath(path).suffix.lower()
    return suffix not in _BY_ESKER
