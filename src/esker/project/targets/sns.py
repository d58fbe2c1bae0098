"""A topic of Amazon's notification service as a target, as users declare it."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from esker.project.declaration import Name
from esker.project.targets.target import TargetDeclaration


class SnsTarget(TargetDeclaration):
    """A topic of SNS. Attributes say `op`, `table`, `changeset` and `version`, for subscribers' filters."""

    type: Literal["sns"] = "sns"
    reaches: ClassVar[tuple[str, ...]] = ("aws",)
    connection: Name | None = Field(
        None, description="The account, named below `connections:`. Default: what the AWS environment says."
    )
    topic: str = Field(
        pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?$",
        description="`arn:aws:sns:…`. In a FIFO topic the changes of a row stay in their order.",
    )
