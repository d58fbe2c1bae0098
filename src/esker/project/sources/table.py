"""A table, or a query on tables, as a source, as users declare it."""

from __future__ import annotations

import hashlib
import re
from typing import Literal

from pydantic import Field

from esker.project.declaration import MistakeAt
from esker.project.modes import WHOLE
from esker.project.sources.source import SourceDeclaration

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_LISTS = re.compile(
    r"\b(?:from|join)\s+(.*?)(?=\b(?:from|join|on|using|where|group|having|order|select|union)\b|[();]|$)",
    re.IGNORECASE | re.DOTALL,
)
"""What stands behind FROM or JOIN: tables, with commas between them."""
_TABLE = re.compile(r"\w+(?:\.\w+)+")
_COPYING = ("upsert", "delete_insert")
"""Modes that can follow a table by its changes."""


class TableSource(SourceDeclaration):
    """Read another Iceberg table: all of it when it has changed, or what is new in it."""

    type: Literal["table"] = "table"
    table: str = Field(
        min_length=1,
        description="The table, such as `bronze.payments`; one of another catalog with its name in front.",
    )
    read: Literal["whole", "appended", "changes"] = Field(
        "whole",
        description="`whole` reads all rows of the newest snapshot, `appended` those that came since "
        "the last run; a table whose rows change cannot be read that way. `changes` reads the change log: "
        "rows that were inserted, updated or deleted since the last run (mode `upsert` or `delete_insert`).",
    )
    where: str | None = Field(
        None,
        min_length=1,
        description="SQL: only rows for which this is true. With `changes`, others count as deleted; when "
        "the condition changes, the table has to be read whole once.",
    )

    @property
    def reads(self) -> str:
        return f"table {self.table}"

    @property
    def fingerprint(self) -> str:
        return f"table {self.table} {self.read}"

    def reads_table(self, name: str) -> bool:
        return self.table == name

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.table,)

    def check_mode(self, mode: str) -> None:
        if self.read == "whole" and mode == "append":
            raise MistakeAt(
                ("source", "read"),
                "mode append would add all rows again whenever the table changes; write read: appended",
            )
        if self.read == "appended" and mode in WHOLE:
            raise MistakeAt(
                ("mode",),
                f"mode {mode} takes a batch for all there is; with read: appended, it is what is new",
            )
        if self.read == "changes" and mode not in _COPYING:
            raise MistakeAt(
                ("mode",),
                f"read: changes updates and deletes rows; write mode: {' or '.join(_COPYING)}, not {mode}",
            )


class QuerySource(SourceDeclaration):
    """Read what a query on the project's tables returns, when one of them has changed."""

    type: Literal["query"] = "query"
    sql: str = Field(min_length=1, description="A SELECT of Spark SQL. Tables are named as in `esker sql`.")

    @property
    def reads(self) -> str:
        return "a query"

    @property
    def fingerprint(self) -> str:
        return "query"

    @property
    def digest(self) -> str:
        """Tells the query from others: what another one returns is loaded although no table has changed."""
        return hashlib.sha256(self.sql.encode()).hexdigest()[:16]

    def reads_table(self, name: str) -> bool:
        pattern = rf"(?<![\w.])(?:\w+\.)?{re.escape(name)}(?![\w.])"
        return re.search(pattern, self.sql.replace("`", ""), re.IGNORECASE) is not None

    @property
    def tables(self) -> tuple[str, ...]:
        lists = _LISTS.findall(_COMMENT.sub(" ", self.sql).replace("`", ""))
        found = (_TABLE.match(each.strip()) for text in lists for each in text.split(","))
        return tuple(dict.fromkeys(match[0] for match in found if match is not None))

    def check_mode(self, mode: str) -> None:
        if mode == "append":
            raise MistakeAt(
                ("mode",),
                "mode append would add all rows again whenever a table changes; see upsert, replace",
            )
