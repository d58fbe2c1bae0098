"""The embedded catalog, as users declare it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from esker.project.declaration import Declaration, Name


class SqliteCatalog(Declaration):
    """Iceberg's JDBC catalog in a SQLite file: no server, one machine."""

    type: Literal["sqlite"] = "sqlite"
    name: Name | None = Field(
        None,
        description="Name under which Spark and PyIceberg see the catalog. Default: `lake`, or the "
        "connection's name.",
    )
    path: str = Field(
        ".esker/catalog.db", description="The database, relative to the project's folder or absolute."
    )
    warehouse: str = Field(
        ".esker/warehouse",
        description="Where tables lie, relative to the project's folder or absolute, or `s3://bucket/path`.",
    )
    store: Name | None = Field(None, description="As for rest, when the warehouse is in S3.")
