"""A Hive Metastore."""

from __future__ import annotations

from esker.engine.catalogs.binding import Binding, warehouse_of
from esker.project import Project
from esker.project.catalogs import HiveCatalog


def bind(catalog: HiveCatalog, project: Project) -> Binding:
    """Return what Spark must know of a Hive Metastore. Its client is among Spark's own jars."""
    warehouse = warehouse_of(catalog, project)
    return Binding(
        settings={
            "type": "hive",
            "uri": catalog.uri,
            "warehouse": warehouse.location,
            **warehouse.settings,
            **catalog.properties,
        },
        jars=warehouse.jars,
        warehouse=warehouse.location,
        folders=warehouse.folders,
        bucket=warehouse.bucket,
    )
