"""A Hive Metastore, as users declare it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, field_validator

from esker.project.catalogs.client_properties import ClientProperties, not_twice
from esker.project.catalogs.safe import Safe
from esker.project.declaration import Name
from esker.project.warehouses import only_known_place

LOCK = "engine.hive.lock-enabled"
"""Iceberg's table property. Without the lock, commits depend on the metastore comparing by itself, which many
do not."""
_SWITCHES = (f"hadoop.iceberg.{LOCK}", f"table-default.{LOCK}", f"table-override.{LOCK}")
"""Properties of a catalog that say the same of all its tables."""
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

    def warnings(self) -> tuple[str, ...]:
        unlocked = self._unlocked_by({})
        return (f"{unlocked}: of two commits of the same moment one may be lost",) if unlocked else ()

    def why_not_keyed(self, table: Mapping[str, str]) -> str | None:
        if (unlocked := self._unlocked_by(table)) is None:
            return None
        return (
            f"{unlocked}, and does not keep two writers apart, so table and change log could differ; take "
            "that property out, or load with append or replace"
        )

    def _unlocked_by(self, table: Mapping[str, str]) -> str | None:
        """Say which property switches the lock off, if one does."""
        said = {key: value for key, value in self.properties.items() if key.lower() in _SWITCHES}
        said |= {key: value for key, value in table.items() if key == LOCK}
        off = [key for key, value in said.items() if value.strip().lower() == "false"]
        return f"with {off[0]}: false a Hive Metastore takes no lock" if off else None
