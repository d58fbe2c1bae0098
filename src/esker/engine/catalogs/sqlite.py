"""The embedded catalog: Iceberg's JDBC catalog in a SQLite file."""

from __future__ import annotations

from esker.engine.catalogs.binding import Binding, local_location
from esker.project import Project
from esker.project.catalogs import SqliteCatalog


def bind(catalog: SqliteCatalog, project: Project) -> Binding:
    """Return what Spark must know of an embedded catalog."""
    database = project.path(catalog.path)
    warehouse = project.path(catalog.warehouse)
    location = local_location(warehouse)
    return Binding(
        settings={
            "type": "jdbc",
            # Two processes may meet at the database; waiting beats "database is locked".
            "uri": f"jdbc:sqlite:{database.resolve()}?busy_timeout=30000",
            "warehouse": location,
            "jdbc.schema-version": "V1",
        },
        jar="sqlite",
        warehouse=location,
        folders=(database.parent, warehouse),
    )
