"""AWS Glue's data catalog, as users declare it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from esker.project.addresses import web_address
from esker.project.catalogs.client_properties import ClientProperties, not_twice
from esker.project.catalogs.safe import Safe
from esker.project.declaration import Name
from esker.project.warehouses import store_kind

_OWN = ("type", "warehouse", "glue.id", "glue.endpoint", "client.region")


class GlueCatalog(Safe):
    """AWS Glue's data catalog. Region and keys, profile or role are those of the store."""

    type: Literal["glue"]
    name: Name | None = Field(None, description="As for sqlite.")
    warehouse: str = Field(description="Where new tables lie: `s3://bucket/path`.")
    account: Annotated[str, StringConstraints(pattern=r"^\d{12}$")] | None = Field(
        None, description="The account whose catalog it is, in quotes. Default: that of the keys."
    )
    endpoint: str | None = Field(None, description="Address of another server. Default: Amazon's own.")
    store: Name | None = Field(None, description="As for rest.")
    properties: ClientProperties = Field(default_factory=dict)

    @field_validator("endpoint")
    @classmethod
    def _whole_address(cls, endpoint: str | None) -> str | None:
        return web_address(endpoint, "keys of the store:") if endpoint is not None else None

    @field_validator("warehouse")
    @classmethod
    def _in_s3(cls, warehouse: str) -> str:
        if store_kind(warehouse) != "s3":
            raise ValueError("Glue's tables are in S3: write s3://bucket/path")
        return warehouse

    @field_validator("properties")
    @classmethod
    def _not_twice(cls, properties: dict[str, str]) -> dict[str, str]:
        return not_twice(properties, _OWN)
