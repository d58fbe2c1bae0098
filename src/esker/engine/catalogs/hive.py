"""A Hive Metastore."""

from __future__ import annotations

from esker.engine.catalogs.binding import Binding, warehouse_of
from esker.project import Project
from esker.project.catalogs import HiveCatalog


def bind(catalog: HiveCatalog, project: Project) -> Binding:
    """Return what Spark must know of a Hive Metastore. Its client is among Spark's own jars."""
    settings = {"type": "hive", "uri": catalog.uri}
    return warehouse_of(catalog, project).bound(settings | catalog.properties)
