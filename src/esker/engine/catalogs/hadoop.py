"""A catalog that is nothing but folders."""

from __future__ import annotations

from esker.engine.catalogs.binding import Binding, warehouse_of
from esker.project import Project
from esker.project.catalogs import HadoopCatalog


def bind(catalog: HadoopCatalog, project: Project) -> Binding:
    """Return what Spark must know of a catalog of folders."""
    warehouse = warehouse_of(catalog, project)
    return Binding(
        settings={"type": "hadoop", "warehouse": warehouse.location, **catalog.properties},
        jars=(),
        warehouse=warehouse.location,
        folders=warehouse.folders,
    )
