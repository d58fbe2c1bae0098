"""A source that is a Python function, as users declare it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from esker.project.sources.source import SourceDeclaration


class PythonSource(SourceDeclaration):
    """Load what a Python function yields.

    The function is marked with `@esker.source`. It stands in a file of the project
    or in an installed package.
    """

    type: Literal["python"] = "python"
    function: str = Field(
        description="File and function, `sources/orders.py:orders`, or module and function.",
        examples=["sources/orders.py:orders", "shop.sources:orders"],
    )
    arguments: dict[str, Any] = Field(default_factory=dict, description="What the function is called with.")
    rows_per_batch: int = Field(
        100_000, ge=1, description="A batch ends with the first position that is reached after so many rows."
    )

    @property
    def reads(self) -> str:
        return f"function {self.function}"

    @property
    def fingerprint(self) -> str:
        return f"python {self.function}"

    @field_validator("function")
    @classmethod
    def _both_parts(cls, function: str) -> str:
        place, _, name = function.rpartition(":")
        if not place or not name.isidentifier():
            raise ValueError("write file and function, sources/orders.py:orders, or module and function")
        return function
