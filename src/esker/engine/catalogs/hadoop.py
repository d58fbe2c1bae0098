"""A catalog that is nothing but folders."""

from __future__ import annotations

from esker.engine.catalogs.binding import Binding, warehouse_of
from esker.project import Project
from esker.project.catalogs import HadoopCatalog


def bind(catalog: HadoopCatalog, project: Project) -> Binding:
    """Return what Spark must know of a catalog of folders."""
    return warehouse_of(catalog, project).bound({"type": "hadoop"} | catalog.properties)
