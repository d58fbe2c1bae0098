"""Keys that a catalog hands out with a table come before those of the project."""

from __future__ import annotations

from typing import Any

import pytest

from esker.engine.iceberg.credentials import store_of
from esker.engine.iceberg.java import iceberg
from tests.folder import Folder

pytestmark = pytest.mark.spark


def keys(name: str) -> dict[str, str]:
    return {"s3.access-key-id": f"{name}-key", "s3.secret-access-key": f"{name}-secret"}


def test_the_narrowest_place_counts(folder: Folder) -> None:
    """Iceberg's own client of S3 holds declared keys, and others for parts of the store."""
    jvm: Any = folder.open().engine.spark.sparkContext._jvm
    io = iceberg(jvm, "aws.s3.S3FileIO")()
    io.initialize({**keys("declared"), "s3.session-token": "of the declared", "client.region": "eu-west-1"})
    try:
        assert store_of(jvm, io, "s3://lake/shop/works").keys == (
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
            store = store_of(jvm, io, f"s3://lake/shop/{location}")
            assert store.keys == (f"{token}-key", f"{token}-secret", token)
            assert store.can_reach(f"s3://lake/shop/{location}")
        assert store_of(jvm, io, "s3://other").keys[2] == "all"
    finally:
        io.close()


def test_stores_that_only_java_can_open(folder: Folder) -> None:
    """Where the catalog signs each request, this process cannot reach the files: Spark does the work."""
    jvm: Any = folder.open().engine.spark.sparkContext._jvm
    io = iceberg(jvm, "aws.s3.S3FileIO")()
    io.initialize({"s3.remote-signing-enabled": "true", "client.region": "eu-west-1"})
    try:
        assert not store_of(jvm, io, "s3://lake/shop").can_reach("s3://lake/shop")
        assert store_of(jvm, io, "file:/tmp/lake").can_reach("file:/tmp/lake")
        assert not store_of(jvm, io, "gs://lake").can_reach("gs://lake")
    finally:
        io.close()
