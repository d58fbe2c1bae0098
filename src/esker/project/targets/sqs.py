"""A queue of Amazon's as a target, as users declare it."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from esker.project.addresses import web_address
from esker.project.declaration import Name
from esker.project.targets.target import TargetDeclaration


class SqsTarget(TargetDeclaration):
    """A queue of SQS. Attributes say `op`, `table`, `changeset` and `version`."""

    type: Literal["sqs"] = "sqs"
    reaches: ClassVar[tuple[str, ...]] = ("aws",)
    connection: Name | None = Field(
        None, description="The account, named below `connections:`. Default: what the AWS environment says."
    )
    queue: str = Field(
        description="`https://sqs.eu-west-1.amazonaws.com/…`. In a FIFO queue the changes of a row stay in "
        "their order."
    )

    @field_validator("queue")
    @classmethod
    def _an_address(cls, queue: str) -> str:
        return web_address(queue, "connection:")
