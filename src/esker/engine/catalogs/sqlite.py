"""The embedded catalog: Iceberg's JDBC catalog in a SQLite file."""

from __future__ import annotations

from esker.engine.catalogs.binding import Binding, warehouse_of
from esker.project import Project
from esker.project.catalogs import SqliteCatalog


def bind(catalog: SqliteCatalog, project: Project) -> Binding:
    """Return what Spark must know of an embedded catalog."""
    database = project.path(catalog.path)
    settings = {
        "type": "jdbc",
        # Two processes may meet at the database; waiting beats "database is locked". A log that is
        # written ahead lets readers and a writer pass each other, and takes one flush for a commit.
        "uri": f"jdbc:sqlite:{database.resolve()}?busy_timeout=30000&journal_mode=WAL",
        "jdbc.schema-version": "V1",
    }
    return warehouse_of(catalog, project).bound(settings, jars=("sqlite",), folders=(database.parent,))
