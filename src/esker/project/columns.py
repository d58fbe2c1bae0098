"""Columns, as users declare them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from esker.project.declaration import Declaration
from esker.project.types import Type, parse_type


class ColumnDeclaration(Declaration):
    """A column in its long form."""

    type: str = Field(description="A Spark type: bigint, decimal(12,2), array<string>, struct<a: int>…")
    required: bool = Field(False, description="No row may lack a value.")
    doc: str | None = Field(None, description="Stored with the column in the table.")
    renamed_from: str | None = Field(
        None, description="The column's former name: a table that still has it renames the column."
    )

    @field_validator("type")
    @classmethod
    def _known(cls, text: str) -> str:
        parse_type(text)
        return text

    def parsed(self) -> Type:
        return parse_type(self.type)


def _short_form(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


AnyColumn = Annotated[
    ColumnDeclaration, BeforeValidator(_short_form, json_schema_input_type=ColumnDeclaration | str)
]
