"""The keys to a table's store, as Iceberg has them: declared by the project, or handed out by the catalog."""

from __future__ import annotations

from typing import Any

from esker.engine.iceberg.java import each, text_map
from esker.engine.store import LOCAL, Store

_WITH_CREDENTIALS = (
    "org.apache.iceberg.aws.s3.S3FileIO",
    "org.apache.iceberg.gcp.gcs.GCSFileIO",
    "org.apache.iceberg.io.ResolvingFileIO",
)


def store_of(jvm: Any, io: Any, location: str) -> Store:
    """Return the store that a table's files at a location are in, as this process opens it."""
    if LOCAL.can_reach(location):
        return LOCAL
    properties = text_map(jvm, io.properties())
    if io.getClass().getName() in _WITH_CREDENTIALS:
        # Some catalogs hand out keys by where they are good for; the narrowest place counts.
        handed_out = {one.prefix(): one.config() for one in each(io.credentials())}
        for prefix in sorted(handed_out, key=len):
            if location.startswith(prefix):
                properties |= text_map(jvm, handed_out[prefix])
    return Store.of(properties)
