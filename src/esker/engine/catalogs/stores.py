"""How Iceberg is told about a store, whatever its kind, and which jar it needs for that."""

from __future__ import annotations

from esker.engine.catalogs import azure, gcs, s3
from esker.project.stores import AzureStore, FileStore, GcsStore


def properties_of(store: FileStore) -> dict[str, str]:
    """Return the properties of a catalog whose tables' files are in the store. Raises ProfileUnusable."""
    if isinstance(store, GcsStore):
        return gcs.properties_of(store)
    return azure.properties_of(store) if isinstance(store, AzureStore) else s3.properties_of(store)


def jar_of(store: FileStore) -> str:
    """Return the jar of the store's client."""
    return {"gcs": gcs.JAR, "azure": azure.JAR, "s3": s3.JAR}[store.type]
