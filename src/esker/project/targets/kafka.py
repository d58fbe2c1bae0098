"""A topic of Kafka as a target, as users declare it."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from esker.project.declaration import Name
from esker.project.targets.target import TargetDeclaration


class KafkaTarget(TargetDeclaration):
    """A topic of Kafka. A message's key is the row's id, so that changes of a row stay in their order.

    Headers say `op`, `table`, `changeset` and `version`.
    """

    type: Literal["kafka"] = "kafka"
    reaches: ClassVar[tuple[str, ...]] = ("kafka",)
    connection: Name = Field(description="The cluster, named below `connections:`.")
    topic: str = Field(pattern=r"^[A-Za-z0-9._-]{1,249}$", description="It must be there.")
    deletes: Literal["tombstone", "message"] = Field(
        "tombstone",
        description="A deleted row becomes a message without a value, which compaction understands, or one "
        "that says which row it was.",
    )
