"""AWS Glue's data catalog."""

from __future__ import annotations

from dataclasses import replace

from esker.engine.catalogs.binding import Binding, warehouse_of
from esker.engine.catalogs.s3 import keys_of
from esker.project import Project
from esker.project.catalogs import GlueCatalog
from esker.project.stores import S3Store


def bind(catalog: GlueCatalog, project: Project) -> Binding:
    """Return what Spark must know of Glue's catalog."""
    settings = {"type": "glue"}
    if catalog.account is not None:
        settings["glue.id"] = catalog.account
    if catalog.endpoint is not None:
        settings["glue.endpoint"] = catalog.endpoint
    store = project.store_of(catalog)
    assert isinstance(store, S3Store), "the project was checked"
    bound = warehouse_of(catalog, project).bound(settings | catalog.properties)
    # A role is not assumed where the bucket is tried beforehand.
    return replace(bound, bucket=bound.bucket if store.role is None else None, java=_of_process(store))


def _of_process(store: S3Store) -> dict[str, str]:
    """Return the keys as Amazon's client of Glue finds them: it does not look at those of S3's."""
    keys = keys_of(store)
    if keys is None:
        return {}
    found = {"aws.accessKeyId": keys.access_key, "aws.secretAccessKey": keys.secret_key}
    return found | ({"aws.sessionToken": keys.session_token} if keys.session_token else {})
