"""A Hive Metastore, as users declare it."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from esker.project.catalogs.client_properties import ClientProperties, not_twice
from esker.project.catalogs.safe import Safe
from esker.project.declaration import Name
from esker.project.warehouses import only_known_place

_SERVER = re.compile(r"thrift://[^\s/@:,]+(:\d+)?")


class HiveCatalog(Safe):
    """A Hive Metastore (2.3 to 3.1; of version 4, its REST endpoint with `type: rest`)."""

    type: Literal["hive"]
    name: Name | None = Field(None, description="As for sqlite.")
    uri: str = Field(description="`thrift://host:9083`; several with commas between them.")
    warehouse: str = Field(
        description="Where new tables lie: a folder that every machine sees, `hdfs://…`, or a place in "
        "the store."
    )
    store: Name | None = Field(None, description="As for rest, when the warehouse is in a store.")
    properties: ClientProperties = Field(default_factory=dict)

    @field_validator("uri")
    @classmethod
    def _thrift(cls, uri: str) -> str:
        for server in uri.split(","):
            if not _SERVER.fullmatch(server.strip()):
                raise ValueError(f'"{server.strip()}" is no metastore; write thrift://host:9083')
        return ",".join(server.strip() for server in uri.split(","))

    @field_validator("warehouse")
    @classmethod
    def _place(cls, warehouse: str) -> str:
        return only_known_place(warehouse, "hdfs", "viewfs")

    @field_validator("properties")
    @classmethod
    def _not_twice(cls, properties: dict[str, str]) -> dict[str, str]:
        return not_twice(properties, ("type", "uri", "warehouse"))
