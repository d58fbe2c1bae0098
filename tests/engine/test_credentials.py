"""Keys that a catalog hands out with a table come before those of the project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.engine.iceberg.access import Access
from esker.engine.iceberg.client import Clients
from esker.engine.iceberg.credentials import access_of
from esker.engine.iceberg.java import iceberg
from esker.errors import EskerError, StoreNotWritable, StoreUnreachable
from tests.folder import Folder

pytestmark = pytest.mark.spark
HADOOP = "org.apache.iceberg.hadoop.HadoopFileIO"


def keys(name: str) -> dict[str, str]:
    return {"s3.access-key-id": f"{name}-key", "s3.secret-access-key": f"{name}-secret"}


def test_the_narrowest_place_counts(folder: Folder) -> None:
    """Iceberg's own client of S3 holds declared keys, and others for parts of the store."""
    jvm: Any = folder.open().engine.spark.sparkContext._jvm
    io = iceberg(jvm, "aws.s3.S3FileIO")()
    io.initialize({**keys("declared"), "s3.session-token": "of the declared", "client.region": "eu-west-1"})
    try:
        assert access_of(jvm, io, "s3://lake/shop/works").store.keys == (
            "declared-key",
            "declared-secret",
            "of the declared",
        )
        handed_out = jvm.java.util.ArrayList()
        for place, token in (("s3://lake/shop/works", "narrow"), ("s3://lake", "wide"), ("s3", "all")):
            handed_out.add(
                iceberg(jvm, "io.StorageCredential").create(place, {**keys(token), "s3.session-token": token})
            )
        io.setCredentials(handed_out)
        for location, token in (("works/data", "narrow"), ("orders", "wide")):
            store = access_of(jvm, io, f"s3://lake/shop/{location}").store
            assert store.keys == (f"{token}-key", f"{token}-secret", token)
            assert store.can_reach(f"s3://lake/shop/{location}")
        assert access_of(jvm, io, "s3://other").store.keys[2] == "all"
    finally:
        io.close()


def test_stores_that_only_java_can_open(folder: Folder) -> None:
    """Where the catalog signs each request, this process cannot reach the files: Iceberg's client does."""
    jvm: Any = folder.open().engine.spark.sparkContext._jvm
    io = iceberg(jvm, "aws.s3.S3FileIO")()
    io.initialize({"s3.remote-signing-enabled": "true", "client.region": "eu-west-1"})
    try:
        assert not access_of(jvm, io, "s3://lake/shop").store.can_reach("s3://lake/shop")
        assert not access_of(jvm, io, "gs://lake").store.can_reach("gs://lake")
    finally:
        io.close()


def test_files_by_iceberg_s_client(folder: Folder, tmp_path: Path) -> None:
    """Few bytes and many, a part of them, what is not there, and Parquet files by Arrow's own threads."""
    engine = folder.open().engine
    client = Clients(engine.spark).of("lake", Access(HADOOP, {}))
    for size in (0, 5, 65_536, 65_537, 3_000_000):
        content, place = os.urandom(size), f"file:{tmp_path}/below/{size} %2F.bin"
        client.write(place, content)
        assert (client.read(place), client.size(place)) == (content, size)
        for length in (2, 70_000):
            if size >= length + 3:
                assert client.read(place, 3, length) == content[3 : length + 3]
    client.write(f"file:{tmp_path}/below/5 %2F.bin", pa.py_buffer(b"again"))
    assert client.read(f"file:{tmp_path}/below/5 %2F.bin") == b"again"
    client.write(f"file:{tmp_path}/below/deeper/6.bin", b"")
    assert len(client.names(f"file:{tmp_path}/below")) == 5
    assert client.names(f"file:{tmp_path}/nowhere") == []
    client.delete(f"file:{tmp_path}/below/0 %2F.bin")
    assert client.size(f"file:{tmp_path}/below/0 %2F.bin") is None
    for ask in (client.read, client.open):
        with pytest.raises(FileNotFoundError):
            ask(f"file:{tmp_path}/nothing")

    rows = pa.table({"id": range(50_000), "name": [f"stone {n}" for n in range(50_000)]})
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=7_000)
    with client.open(f"file:{tmp_path}/rows.parquet") as stream:
        assert pq.ParquetFile(stream, pre_buffer=True).read().equals(rows)


def test_what_a_store_refuses_is_said(folder: Folder, tmp_path: Path) -> None:
    """Hadoop's own words, as one of Esker's errors."""
    client = Clients(folder.open().engine.spark).of("lake", Access(HADOOP, {}))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(EskerError) as caught:
        client.write(f"file:{tmp_path}/file/below.bin", b"x")
    assert caught.value.code in (StoreUnreachable.code, StoreNotWritable.code)
    assert str(tmp_path) in str(caught.value)
