"""Iceberg's JDBC catalog in PostgreSQL, as users declare it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from esker.project.catalogs.safe import Safe
from esker.project.declaration import Name
from esker.project.secrets import Secret
from esker.project.warehouses import only_known_place


class JdbcCatalog(Safe):
    """Iceberg's JDBC catalog in a PostgreSQL database: several machines, no further server."""

    type: Literal["jdbc"] = "jdbc"
    name: Name | None = Field(None, description="As for sqlite.")
    url: str = Field(description="`jdbc:postgresql://host:5432/database`, without credentials.")
    user: str | None = Field(None, description="User of the database.")
    password: Secret | None = None
    warehouse: str = Field(
        description="Where tables lie: a folder that every machine sees, or a place in the store, such as "
        "`s3://bucket/path`."
    )
    store: Name | None = Field(None, description="As for rest, when the warehouse is in a store.")

    @field_validator("url")
    @classmethod
    def _postgresql_without_credentials(cls, url: str) -> str:
        if not url.startswith("jdbc:postgresql://"):
            raise ValueError("the url must begin with jdbc:postgresql://")
        if "@" in url or "password=" in url:
            raise ValueError("the url holds credentials; write them as user: and password: ${NAME}")
        return url

    @field_validator("warehouse")
    @classmethod
    def _place(cls, warehouse: str) -> str:
        return only_known_place(warehouse)
