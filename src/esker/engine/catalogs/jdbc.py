"""Iceberg's JDBC catalog in PostgreSQL."""

from __future__ import annotations

from esker.engine.catalogs.binding import Binding, local_location
from esker.project import Project
from esker.project.catalogs import JdbcCatalog


def bind(catalog: JdbcCatalog, project: Project) -> Binding:
    """Return what Spark must know of a catalog in PostgreSQL."""
    folder = None if ":" in catalog.warehouse else project.path(catalog.warehouse)
    location = local_location(folder) if folder else catalog.warehouse
    credentials = {}
    if catalog.user:
        credentials["jdbc.user"] = catalog.user
    if catalog.password:
        credentials["jdbc.password"] = catalog.password.get_secret_value()
    return Binding(
        settings={
            "type": "jdbc",
            "uri": catalog.url,
            "warehouse": location,
            "jdbc.schema-version": "V1",
            **credentials,
        },
        jar="postgresql",
        warehouse=location,
        folders=(folder,) if folder else (),
    )
