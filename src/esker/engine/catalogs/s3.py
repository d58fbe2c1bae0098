"""How Iceberg is told about an S3 store."""

from __future__ import annotations

from esker.engine.catalogs.aws_profile import AwsKeys, profile_keys
from esker.project.stores import S3Store
from esker.project.stores.s3 import USUAL_REGION

JAR = "aws"
"""Amazon's client: Iceberg's runtime knows how to use it, and does not hold it."""


def keys_of(store: S3Store) -> AwsKeys | None:
    """Return the keys that a store is opened with; None where it has none itself. Raises ProfileUnusable."""
    if store.profile is not None:
        return profile_keys(store.profile)
    if store.access_key is None or store.secret_key is None:
        return None
    token = store.session_token.get_secret_value() if store.session_token is not None else None
    return AwsKeys(store.access_key.get_secret_value(), store.secret_key.get_secret_value(), token)


def properties_of(store: S3Store) -> dict[str, str]:
    """Return the properties of a catalog whose tables' files are in the store. Raises ProfileUnusable."""
    found = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}
    if store.endpoint is not None:
        found["s3.endpoint"] = store.endpoint
    if store.path_style:
        found["s3.path-style-access"] = "true"
    if region := store.signing_region:
        found["client.region"] = region
    if store.role is not None:
        found["client.factory"] = "org.apache.iceberg.aws.AssumeRoleAwsClientFactory"
        found["client.assume-role.arn"] = store.role
        found["client.assume-role.region"] = region or USUAL_REGION
        found["client.assume-role.session-name"] = "esker"
        if store.external_id is not None:
            found["client.assume-role.external-id"] = store.external_id
    return found | named(keys_of(store), "s3.")


def named(keys: AwsKeys | None, prefix: str) -> dict[str, str]:
    """Return keys under the names that Iceberg has for them behind a prefix."""
    if keys is None:
        return {}
    found = {f"{prefix}access-key-id": keys.access_key, f"{prefix}secret-access-key": keys.secret_key}
    return found | ({f"{prefix}session-token": keys.session_token} if keys.session_token else {})
