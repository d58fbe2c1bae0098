"""How Iceberg is told about Google Cloud Storage."""

from __future__ import annotations

from esker.project.stores import GcsStore

JAR = "gcp"
"""Google's client."""


def properties_of(store: GcsStore) -> dict[str, str]:
    """Return the properties of a catalog whose tables' files are in the store."""
    found = {"io-impl": "org.apache.iceberg.gcp.gcs.GCSFileIO"}
    if store.endpoint is not None:
        found["gcs.service.host"] = store.endpoint
    if store.project is not None:
        found["gcs.project-id"] = store.project
    if store.anonymous:
        found["gcs.no-auth"] = "true"
    return found
