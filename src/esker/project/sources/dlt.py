"""A source that is a dlt resource, as users declare it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from esker.project.sources.source import SourceDeclaration


class DltSource(SourceDeclaration):
    """Load what a dlt resource yields.

    What dlt would keep as the state of its pipeline is the position of this one: it is published in the
    same commit as the rows. Nested values stay nested.
    """

    type: Literal["dlt"] = "dlt"
    resource: str = Field(
        description="File and name, `sources/github.py:issues`, or module and name, of a dlt resource, of a "
        "dlt source, or of a function that returns one.",
        examples=["sources/github.py:issues", "shop.sources:orders"],
    )
    select: str | None = Field(
        None, description="Which resource of a dlt source. May be left out where it has one only."
    )
    arguments: dict[str, Any] = Field(default_factory=dict, description="What it is called with.")
    rows_per_batch: int | None = Field(
        None,
        ge=1,
        description="Publish while rows still come: a batch ends with the first page after so many rows. "
        'Only for resources with `dlt.sources.incremental(…, row_order="asc")`. Without it, all rows '
        "of a run are one batch.",
    )

    @property
    def reads(self) -> str:
        return f"dlt resource {self.resource}" + (f", {self.select}" if self.select else "")

    @property
    def fingerprint(self) -> str:
        return f"dlt {self.resource}" + (f" {self.select}" if self.select else "")

    @field_validator("resource")
    @classmethod
    def _both_parts(cls, resource: str) -> str:
        place, _, name = resource.rpartition(":")
        if not place or not name.isidentifier():
            raise ValueError("write file and name, sources/github.py:issues, or module and name")
        return resource
