"""What happens to a source's rows before they are checked, as users declare it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from esker.errors import Problem
from esker.project.declaration import Declaration, MistakeAt
from esker.project.document import Document, KeyPath
from esker.project.types import Column, parse_type

_FILE = re.compile(r"\S+\.sql")


class Transform(Declaration):
    """A SELECT that makes each of the table's rows from one row of the source."""

    sql: str = Field(
        min_length=1,
        description="`SELECT … FROM input`, with `WHERE` if rows are to be left out; or a file below the "
        "project's folder: `sql/records.sql`. Each row is looked at for itself.",
        examples=["SELECT id, upper(name) AS name FROM input", "sql/records.sql"],
    )
    input: dict[str, str] = Field(
        default_factory=dict,
        description="Columns that the SELECT names and that a batch may lack, with their types: they are "
        "null then. `string` keeps an object or a list of JSON as it was written.",
    )

    @field_validator("sql")
    @classmethod
    def _a_query(cls, sql: str) -> str:
        if re.search(r"\bselect\b.*\bfrom\b", sql, re.IGNORECASE | re.DOTALL) is None:
            raise ValueError("write SELECT … FROM input, or the name of a file that ends with .sql")
        return sql

    @field_validator("input")
    @classmethod
    def _known_types(cls, columns: dict[str, str]) -> dict[str, str]:
        for name, kind in columns.items():
            try:
                parse_type(kind)
            except ValueError as error:
                raise MistakeAt((name,), str(error)) from None
        return columns

    def declared_input(self) -> tuple[Column, ...]:
        return tuple(Column(name, parse_type(kind)) for name, kind in self.input.items())


def _short_form(value: Any) -> Any:
    return {"sql": value} if isinstance(value, str) else value


AnyTransform = Annotated[Transform, BeforeValidator(_short_form, json_schema_input_type=Transform | str)]


def lay_transforms(document: Document, folder: Path) -> list[Problem]:
    """Put the SELECTs that stand in files into the document. Returns what is wrong."""
    problems = []
    entries = {key: document.at((key,)) for key in ("pipelines", "consumers")}
    names = [(key, name) for key, found in entries.items() if isinstance(found, dict) for name in found]
    for key, name in names:
        place: KeyPath = (key, name, "transform")
        if isinstance(document.at(place), dict):
            place = (*place, "sql")
        file = document.at(place)
        if not isinstance(file, str) or _FILE.fullmatch(file) is None:
            continue
        try:
            document.put(place, (folder / file).read_text(encoding="utf-8"))
        except FileNotFoundError:
            problems.append(document.problem(place, f'there is no file "{file}"'))
        except (OSError, UnicodeDecodeError) as error:
            problems.append(document.problem(place, f'file "{file}" cannot be read: {error}'))
    return problems
