"""A webhook as a target, as users declare it."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from esker.project.declaration import Name
from esker.project.targets.target import TargetDeclaration


class WebhookTarget(TargetDeclaration):
    """A webhook. Changes are sent by POST as JSON, each with `id`, `op`, `version`, `table`, `changeset`,
    `key` and `body`."""

    type: Literal["webhook"] = "webhook"
    reaches: ClassVar[tuple[str, ...]] = ("webhook",)
    connection: Name = Field(description="The address, named below `connections:`.")
    batch_size: int = Field(
        1,
        ge=1,
        le=10_000,
        description="Most changes in one request. With 1 the body is the change itself, with more a list.",
    )
