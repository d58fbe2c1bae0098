"""Iceberg's JDBC catalog in PostgreSQL."""

from __future__ import annotations

from esker.engine.catalogs.binding import Binding, warehouse_of
from esker.project import Project
from esker.project.catalogs import JdbcCatalog


def bind(catalog: JdbcCatalog, project: Project) -> Binding:
    """Return what Spark must know of a catalog in PostgreSQL."""
    settings = {"type": "jdbc", "uri": catalog.url, "jdbc.schema-version": "V1"}
    if catalog.user:
        settings["jdbc.user"] = catalog.user
    if catalog.password:
        settings["jdbc.password"] = catalog.password.get_secret_value()
    return warehouse_of(catalog, project).bound(settings, jars=("postgresql",))
