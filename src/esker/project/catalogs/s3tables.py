"""Amazon S3 Tables by Iceberg's REST protocol, as users declare it."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from esker.project.addresses import web_address
from esker.project.catalogs.client_properties import ClientProperties, not_twice
from esker.project.catalogs.safe import Safe
from esker.project.declaration import Name

_ARN = re.compile(r"arn:aws[a-z-]*:s3tables:([a-z0-9-]+):\d{12}:bucket/[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_OWN = ("type", "uri", "warehouse", "rest.auth.type", "rest.signing-name", "rest.signing-region")


class S3TablesCatalog(Safe):
    """A table bucket of Amazon S3 Tables. Requests are signed (SigV4) with the keys of the store."""

    type: Literal["s3tables"]
    name: Name | None = Field(None, description="As for sqlite.")
    warehouse: str = Field(
        description="ARN of the table bucket: `arn:aws:s3tables:eu-west-1:111122223333:bucket/lake`."
    )
    uri: str | None = Field(
        None,
        description="Address of another server that speaks the same, without `/v1`. Default: Amazon's own in "
        "the region of the ARN.",
    )
    store: Name | None = Field(
        None,
        description="As for rest. Default: S3 in the region of the ARN, with the keys of the environment.",
    )
    properties: ClientProperties = Field(default_factory=dict)

    @field_validator("warehouse")
    @classmethod
    def _table_bucket(cls, warehouse: str) -> str:
        if not _ARN.fullmatch(warehouse):
            raise ValueError(
                "write the ARN of a table bucket: arn:aws:s3tables:eu-west-1:111122223333:bucket/lake"
            )
        return warehouse

    @field_validator("uri")
    @classmethod
    def _whole_address(cls, uri: str | None) -> str | None:
        return web_address(uri, "keys of the store:") if uri is not None else None

    @field_validator("properties")
    @classmethod
    def _not_twice(cls, properties: dict[str, str]) -> dict[str, str]:
        return not_twice(properties, _OWN)

    @property
    def region(self) -> str:
        """The region that the ARN names."""
        found = _ARN.fullmatch(self.warehouse)
        assert found is not None
        return found[1]

    @property
    def address(self) -> str:
        """Address of the server, without `/v1`."""
        return self.uri or f"https://s3tables.{self.region}.amazonaws.com/iceberg"
