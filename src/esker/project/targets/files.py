"""Files as a target, as users declare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from esker.project.declaration import Declaration, MistakeAt, Name
from esker.project.sources.store_address import StoreAddress, store_address
from esker.project.targets.target import TargetDeclaration


class FilesTarget(TargetDeclaration):
    """Files of changes below a folder. Each holds `id`, `op`, `version`, `table`, `changeset`, `key` and
    `body`; what is delivered again is written under the same names."""

    type: Literal["files"] = "files"
    reaches: ClassVar[tuple[str, ...]] = ("s3", "gcs", "azure")
    path: str = Field(
        min_length=1, description="A folder of the project, or a place in a store: `s3://bucket/changes`."
    )
    format: Literal["jsonl", "parquet"] = Field(
        "jsonl", description="JSON lines, or Parquet in which `key` and `body` are JSON as text."
    )
    connection: Name | None = Field(
        None, description="The store, named below `connections:`. Default: what the environment says."
    )

    @field_validator("path")
    @classmethod
    def _known_place(cls, path: str) -> str:
        path = path.removeprefix("file://").rstrip("/") or "/"
        store_address(path)
        return path

    @model_validator(mode="after")
    def _reachable(self) -> FilesTarget:
        if self.address is None and self.connection is not None:
            raise MistakeAt(("connection",), "files on a disk need no connection; write path: s3://…")
        is_azure = self.address is not None and self.address.kind == "azure"
        if is_azure and self.connection is None and self.address and self.address.account is None:
            raise MistakeAt(("path",), "say which account: connection:, or abfss://container@account…")
        return self

    @property
    def address(self) -> StoreAddress | None:
        """Where in a store it is; None for a disk."""
        return store_address(self.path)

    def check_connection(self, connections: Mapping[str, Declaration], place: tuple[str, ...]) -> None:
        super().check_connection(connections, place)
        if self.connection is None or self.address is None:
            return
        kind = str(getattr(connections[self.connection], "type", ""))
        if kind != self.address.kind:
            raise MistakeAt(
                (*place, "connection"),
                f'"{self.connection}" is of type {kind}, and the path of {self.address.kind}',
            )
