"""Iceberg's JDBC catalog in PostgreSQL."""

from __future__ import annotations

from esker.engine.catalogs.binding import Binding, warehouse_of
from esker.project import Project
from esker.project.catalogs import JdbcCatalog


def bind(catalog: JdbcCatalog, project: Project) -> Binding:
    """Return what Spark must know of a catalog in PostgreSQL."""
    warehouse = warehouse_of(catalog, project)
    credentials = {}
    if catalog.user:
        credentials["jdbc.user"] = catalog.user
    if catalog.password:
        credentials["jdbc.password"] = catalog.password.get_secret_value()
    return Binding(
        settings={
            "type": "jdbc",
            "uri": catalog.url,
            "warehouse": warehouse.location,
            "jdbc.schema-version": "V1",
            **credentials,
            **warehouse.settings,
        },
        jars=("postgresql", *warehouse.jars),
        warehouse=warehouse.location,
        folders=warehouse.folders,
        bucket=warehouse.bucket,
    )
