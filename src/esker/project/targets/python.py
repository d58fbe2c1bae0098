"""A Python function as a target, as users declare it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from esker.project.targets.target import TargetDeclaration


class PythonTarget(TargetDeclaration):
    """A Python function. It is called with a list of messages, which have `id`, `op`, `version`, `table`,
    `changeset`, `key` and `body`.

    It returns nothing, or a dictionary of ids that it refuses, each with the reason. Whatever it is
    called with may come again.
    """

    type: Literal["python"] = "python"
    function: str = Field(
        description="File and function, `targets/works.py:keep`, or module and function.",
        examples=["targets/works.py:keep", "shop.targets:keep"],
    )
    arguments: dict[str, Any] = Field(
        default_factory=dict, description="What the function is called with besides."
    )

    @field_validator("function")
    @classmethod
    def _both_parts(cls, function: str) -> str:
        place, _, name = function.rpartition(":")
        if not place or not name.isidentifier():
            raise ValueError("write file and function, targets/works.py:keep, or module and function")
        return function
