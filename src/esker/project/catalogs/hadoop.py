"""A catalog that is nothing but folders, as users declare it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, field_validator

from esker.project.catalogs.client_properties import ClientProperties, not_twice
from esker.project.declaration import Declaration, Name
from esker.project.warehouses import scheme_of


class HadoopCatalog(Declaration):
    """Tables by their folders, without any database or server: for one writer, and without keyed modes."""

    type: Literal["hadoop"]
    name: Name | None = Field(None, description="As for sqlite.")
    warehouse: str = Field(
        description="The folder that has a folder for each table, or `hdfs://host:8020/path`, no store."
    )
    store: None = Field(None, description="Nothing: the tables' files are in the warehouse.")
    properties: ClientProperties = Field(default_factory=dict)

    @field_validator("warehouse")
    @classmethod
    def _renames(cls, warehouse: str) -> str:
        if scheme_of(warehouse) not in (None, "file", "hdfs", "viewfs"):
            raise ValueError(
                "a commit is the renaming of a file, which object stores cannot do; write a folder or "
                "hdfs://…, or take another catalog: type: sqlite keeps its tables in stores"
            )
        return warehouse

    @field_validator("properties")
    @classmethod
    def _not_twice(cls, properties: dict[str, str]) -> dict[str, str]:
        return not_twice(properties, ("type", "warehouse"))

    def warnings(self) -> tuple[str, ...]:
        """Return what people should know of it before they use it."""
        return (
            "a hadoop catalog is for one writer at a time: between its look whether a commit is there and "
            "its rename, another process may commit, and that commit is lost without an error",
        )

    def why_not_keyed(self, table: Mapping[str, str]) -> str | None:
        """Return why rows cannot be loaded by key into a table with these properties, if so."""
        return (
            "a hadoop catalog does not keep two writers apart, so table and change log could differ; load "
            "with append or replace, or take another catalog (type: sqlite needs no server either)"
        )
