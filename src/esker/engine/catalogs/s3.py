"""How Iceberg is told about an S3 store."""

from __future__ import annotations

from esker.project.stores import S3Store

JAR = "aws"
"""Amazon's client: Iceberg's runtime knows how to use it, and does not hold it."""
_USUAL_REGION = "us-east-1"


def is_in_s3(location: str) -> bool:
    """Tell whether a location is in an S3 store."""
    return location.startswith(("s3://", "s3a://"))


def properties_of(store: S3Store) -> dict[str, str]:
    """Return the properties of a catalog whose tables' files are in the store."""
    found = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}
    if store.endpoint is not None:
        found["s3.endpoint"] = store.endpoint
    if store.path_style:
        found["s3.path-style-access"] = "true"
    # Servers of one's own have no regions, but requests are signed with one.
    if region := store.region or (_USUAL_REGION if store.endpoint is not None else None):
        found["client.region"] = region
    keys = {
        "s3.access-key-id": store.access_key,
        "s3.secret-access-key": store.secret_key,
        "s3.session-token": store.session_token,
    }
    return found | {name: key.get_secret_value() for name, key in keys.items() if key is not None}
