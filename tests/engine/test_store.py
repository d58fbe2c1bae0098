"""Which stores this process opens itself, and how: from what Iceberg is told."""

from __future__ import annotations

import base64

from pyarrow import fs

from esker.engine.store import Store

GOOGLE = {"io-impl": "org.apache.iceberg.gcp.gcs.GCSFileIO"}
AZURE = {"io-impl": "org.apache.iceberg.azure.adlsv2.ADLSFileIO"}
KEY = base64.b64encode(b"a key of the account").decode()


def test_google_and_azure_are_opened_as_iceberg_opens_them() -> None:
    """Buckets and containers come from the address, ways in from the properties."""
    store = Store.of({"gcs.service.host": "http://127.0.0.1:1", "gcs.no-auth": "true"})
    files, path = store.filesystem("gs://lake/wh/shop/a b.parquet")
    assert isinstance(files, fs.GcsFileSystem)
    assert path == "lake/wh/shop/a b.parquet"

    host = "museum.dfs.core.windows.net"
    told = {
        "adls.auth.shared-key.account.name": "museum",
        "adls.auth.shared-key.account.key": KEY,
        f"adls.connection-string.{host}": "http://127.0.0.1:1/museum",
    }
    files, path = Store.of(told).filesystem(f"abfss://lake@{host}/wh/shop/a=1/x.parquet")
    assert isinstance(files, fs.AzureFileSystem)
    assert path == "lake/wh/shop/a=1/x.parquet"
    assert KEY not in repr(Store.of(told))


def test_ways_that_only_java_knows_are_left_to_spark() -> None:
    """So are stores that Iceberg opens by Hadoop's clients."""
    in_google, in_azure = "gs://lake/a", "abfss://lake@museum.dfs.core.windows.net/a"
    for told, place, expected in (
        ({}, "s3://lake/a", True),
        ({"client.factory": "org.apache.iceberg.aws.AssumeRoleAwsClientFactory"}, "s3://lake/a", False),
        ({"s3.sse.type": "none", "s3.remote-signing-enabled": "FALSE"}, "s3://lake/a", True),
        ({"s3.sse.type": "kms", "s3.sse.key": "alias/lake"}, "s3://lake/a", False),
        ({"s3.acl": "bucket-owner-full-control"}, "s3a://lake/a", False),
        ({"s3.write.tags.team": "museum"}, "s3://lake/a", False),
        ({"s3.access-points.lake": "arn:aws:s3:eu-west-1:1:accesspoint/lake"}, "s3://lake/a", False),
        (GOOGLE, in_google, True),
        (GOOGLE | {"gcs.oauth2.token": "handed out"}, in_google, False),
        (AZURE, in_azure, True),
        (AZURE | {"adls.token": "handed out"}, in_azure, False),
        ({}, in_google, False),
        (GOOGLE, in_azure, False),
        ({}, "hdfs://namenode/a", False),
    ):
        assert Store.of(told).can_reach(place) is expected, (told, place)


def test_local_location_is_the_path_itself() -> None:
    """With a scheme or without: Iceberg quotes partition values, and never the location."""
    for location, path in (
        ("/lake/city=a%2Fb/1.parquet", "/lake/city=a%2Fb/1.parquet"),
        ("file:/lake/city=a%2Fb/1.parquet", "/lake/city=a%2Fb/1.parquet"),
        ("file:///lake/a b%20c#d?e/1.parquet", "/lake/a b%20c#d?e/1.parquet"),
        ("/lake/a b%20c#d?e/1.parquet", "/lake/a b%20c#d?e/1.parquet"),
    ):
        assert Store().filesystem(location)[1] == path
