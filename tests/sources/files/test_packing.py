"""Packed files are unpacked, or refused by name."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pyarrow as pa
import pytest

from esker.errors import PackingUnknown, SourceUnreadable
from esker.sources.files.packing import is_left_to_spark, packing_of, refuse_packed
from tests.folder import Folder


def zipped(text: str, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(text.encode())
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.spark
def test_every_way_to_pack(make_folder: Callable[..., Folder]) -> None:
    """In one batch, with a name that would be the same unpacked; a cut one is refused."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline("landing/*", "jsonl")})
    landing = folder.path / "landing"
    folder.write("landing/a.jsonl", '{"id": 1}\n')
    (landing / "a.jsonl.zst").write_bytes(zipped('{"id": 2}\n', "zstd"))
    (landing / "a.jsonl.lz4").write_bytes(zipped('{"id": 3}\n', "lz4"))
    (landing / "a.jsonl.gz").write_bytes(gzip.compress(b'{"id": 4}\n'))
    (landing / "b.jsonl.bz2").write_bytes(zipped('{"id": 5}\n', "bz2"))
    (landing / "empty.jsonl.zst").write_bytes(b"")
    assert folder.run().rows.inserted == 5
    assert folder.rows("shop.sales", "id") == [(1,), (2,), (3,), (4,), (5,)]
    (landing / "c.jsonl.zst").write_bytes(zipped('{"id": 6}\n' * 100, "zstd")[:-5])
    with pytest.raises(SourceUnreadable, match=r"landing/c\.jsonl\.zst") as caught:
        folder.run()
    assert "cannot be unpacked" in caught.value.reason
    (landing / "c.jsonl.zst").unlink()
    folder.write("landing/d.jsonl.xz", "")
    with pytest.raises(PackingUnknown, match=r"landing/d\.jsonl\.xz"):
        folder.run()


def test_which_is_which() -> None:
    assert [packing_of(f"a.csv{end}") for end in ("", ".GZ", ".bz2", ".zst", ".lz4")] == [
        None,
        "gzip",
        "bz2",
        "zstd",
        "lz4",
    ]
    for end in (".zip", ".xz", ".tar", ".snappy", ".deflate"):
        with pytest.raises(PackingUnknown, match=end):
            packing_of(f"a.csv{end}")
    assert is_left_to_spark("a.csv.gz")
    assert not is_left_to_spark("a.csv.ZST")
    refuse_packed("a.parquet", "parquet")
    with pytest.raises(PackingUnknown):
        refuse_packed("a.parquet.zst", "parquet")
