"""The embedded catalog, as users declare it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from esker.project.catalogs.safe import Safe
from esker.project.declaration import Name
from esker.project.warehouses import only_known_place


class SqliteCatalog(Safe):
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
        description="Where tables lie, relative to the project's folder or absolute, or a place in the "
        "store, such as `s3://bucket/path`.",
    )
    store: Name | None = Field(None, description="As for rest, when the warehouse is in a store.")

    @field_validator("warehouse")
    @classmethod
    def _place(cls, warehouse: str) -> str:
        return only_known_place(warehouse)
