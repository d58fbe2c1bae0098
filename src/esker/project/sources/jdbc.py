"""A database source, as users declare it."""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from esker.project.declaration import Declaration, Duration, MistakeAt, parse_duration
from esker.project.modes import WHOLE
from esker.project.secrets import Secret
from esker.project.sources.source import SourceDeclaration
from esker.project.sources.windows import WindowSettings

DatabaseKind = Literal["postgresql", "mariadb", "sqlite"]
_KINDS: dict[str, DatabaseKind] = {
    "jdbc:postgresql://": "postgresql",
    "jdbc:mariadb://": "mariadb",
    "jdbc:mysql://": "mariadb",
    "jdbc:sqlite:": "sqlite",
}
"""How addresses begin. MariaDB and MySQL speak one protocol."""
REPEATABLE = ("upsert", "insert_only", "scd2")
"""Modes in which a row that is read again changes nothing."""


def _units_or_duration(value: Any) -> Any:
    return value if isinstance(value, int) and not isinstance(value, bool) else parse_duration(value)


def written(*parts: str) -> str:
    """Return a table's name, as `table:` has it: parts with a dot in them stand in quotes."""
    return ".".join(_in_quotes(part) if "." in part or part[:1] == '"' else part for part in parts)


def name_parts(table: str) -> list[str]:
    """Return the parts of a table's name: what stands in quotes is one, also with dots in it."""
    parts, rest, dot = [], table, "."
    while dot:
        if found := re.match(r'"((?:[^"]|"")+)"(\.|$)', rest):
            parts.append(found[1].replace('""', '"'))
        else:
            found = re.match(r"([^.]*)(\.|$)", rest)
            assert found is not None
            parts.append(found[1])
        dot, rest = found[2], rest[found.end() :]
    return parts


def _in_quotes(part: str) -> str:
    return '"' + part.replace('"', '""') + '"'


Lag = Annotated[
    timedelta | Annotated[int, Field(ge=1)],
    BeforeValidator(_units_or_duration),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "examples": ["30s", "15m", "6h"]}, {"type": "integer", "minimum": 1}]}
    ),
]
"""How far to go back: a time, or a number."""


class Chunks(Declaration):
    """How a large table is cut: by ranges of a column, of about so many rows each."""

    column: str | None = Field(
        None,
        min_length=1,
        description="A column with an index. Default: the primary key, where that is one number or date; "
        "with `cursor`, that column.",
    )
    size: int = Field(100_000, ge=1, description="Rows of a chunk. Each is read by a query of its own.")


class JdbcSource(SourceDeclaration):
    """Read a table of a database, or what a query returns: all of it, or what is new by a cursor."""

    type: Literal["jdbc"] = "jdbc"
    url: str = Field(
        description="`jdbc:postgresql://host:5432/database`, `jdbc:mariadb://…`, `jdbc:mysql://…` or "
        "`jdbc:sqlite:path`, without credentials."
    )
    user: str | None = Field(None, description="User of the database.")
    password: Secret | None = None
    table: str | None = Field(
        None,
        min_length=1,
        description='The table, as the database writes it: `orders`, `shop.orders`, or `shop."odd.name"`.',
    )
    query: str | None = Field(
        None, min_length=1, description="A SELECT of the database, in place of a table."
    )
    cursor: str | None = Field(
        None,
        min_length=1,
        description="Column that only grows, such as a number or the time of the last change: each run reads "
        "what lies beyond the last value. Without it, each run reads everything.",
    )
    lag: Lag | None = Field(
        None,
        description="For rows that become visible late: `10m`, or a number where the cursor is one. In "
        "upsert, insert_only and scd2 each run goes back so far behind the last value; in append and "
        "delete_insert it reads no row that is nearer than that to the highest value. A cursor needs it, "
        "except in PostgreSQL, where running transactions are seen.",
    )
    cursor_order: Literal["commit"] | None = Field(
        None,
        description="`commit` says that rows become visible in the order of the cursor, as with one writer "
        "at a time: `lag` is not needed then, and running transactions are not waited for. Where that is not "
        "true, rows are lost.",
    )
    range: Literal["closed", "open"] | None = Field(
        None,
        description="Rows whose cursor equals the last value are read again (`closed`) or not (`open`). "
        "Default: closed in upsert, insert_only and scd2, where that changes nothing; else open.",
    )
    nulls: Literal["error", "include", "skip"] = Field(
        "error",
        description="Rows without a cursor: `error` ends the run, `include` reads them in every run (upsert, "
        "insert_only and scd2), `skip` leaves them out and says how many.",
    )
    chunks: Chunks | None = Field(
        None, description="How a large table is cut. With `cursor`, it is only cut when this is declared."
    )
    window: WindowSettings | None = Field(
        None, description="Ask by windows of time. The cursor must be a time."
    )
    connections: int = Field(4, ge=1, description="Most queries at once, and chunks in one batch.")
    fetch_size: int = Field(10_000, ge=1, description="Rows that the database sends at a time.")
    timeout: Duration = Field(timedelta(minutes=10), description="How long an answer is waited for.")

    @property
    def kind(self) -> DatabaseKind:
        """Which database it is."""
        return next(kind for start, kind in _KINDS.items() if self.url.startswith(start))

    @property
    def reads(self) -> str:
        return f"{self.url} ({self.table or 'query'})"

    @property
    def fingerprint(self) -> str:
        asked = self.table or f"query {hashlib.sha256((self.query or '').encode()).hexdigest()[:16]}"
        how = "window" if self.window is not None else "cursor"
        return f"jdbc {self.url} {asked} {f'{how} {self.cursor}' if self.cursor else ''}".rstrip()

    @property
    def jars(self) -> tuple[str, ...]:
        return (self.kind,)

    def is_closed(self, mode: str) -> bool:
        """Tell whether rows whose cursor equals the last value are read again."""
        return self.range == "closed" if self.range is not None else mode in REPEATABLE

    @property
    def sees_late_rows(self) -> bool:
        """Something keeps rows from being lost that are committed behind others with higher values."""
        return (
            self.cursor is None
            or self.window is not None
            or self.kind == "postgresql"  # running transactions are seen there
            or self.lag is not None
            or self.cursor_order == "commit"
        )

    def warnings(self) -> tuple[str, ...]:
        if self.cursor_order is None or self.lag is not None:
            return ()
        return (
            f"cursor_order: commit: a row that is committed behind one with a higher {self.cursor} is lost",
        )

    def check_mode(self, mode: str) -> None:
        if self.cursor is None:
            return
        if mode in WHOLE or mode == "replace_partitions":
            raise MistakeAt(
                ("mode",), f"mode {mode} takes a batch for all there is; with cursor:, it is what is new"
            )
        if mode == "delete_insert" and self.chunks is not None:
            raise MistakeAt(
                ("source", "chunks"),
                "rows of a key may stand in several chunks, and those of the last would replace the others",
            )
        if not self.sees_late_rows:
            raise MistakeAt(
                ("source", "cursor"),
                "rows that are committed late, behind others with higher values, would be lost; write lag: "
                "with a time (or a number, if the cursor is one) that is longer than any transaction takes, "
                "such as lag: 10m, or cursor_order: commit where there is only one writer at a time",
            )
        if mode in REPEATABLE:
            return
        repeats = {
            "range": self.range == "closed",
            "nulls": self.nulls == "include",
        }
        for key, is_repeating in repeats.items():
            if is_repeating:
                raise MistakeAt(
                    ("source", key),
                    f"rows would be read again, which mode {mode} does not bear; {', '.join(REPEATABLE)} do",
                )

    @field_validator("url")
    @classmethod
    def _known_without_credentials(cls, url: str) -> str:
        if not url.startswith(tuple(_KINDS)):
            raise ValueError(f"the url must begin with {', '.join(_KINDS)}")
        if re.search(r"(?i)//[^/?]*@|[?&;][^=&;]*(?:user|pass|secret|token)[^=&;]*=", url):
            raise ValueError("the url holds credentials; write them as user: and password: ${NAME}")
        return url

    @field_validator("query")
    @classmethod
    def _one_query(cls, query: str | None) -> str | None:
        return query.strip().rstrip(";") if query is not None else None

    @model_validator(mode="after")
    def _whole(self) -> JdbcSource:
        if (self.table is None) == (self.query is None):
            raise MistakeAt(("table",), "write table: or query:, one of them")
        if self.password is not None and self.user is None:
            raise MistakeAt(("password",), "a password needs user:")
        if self.cursor is None:
            for key in ("lag", "cursor_order", "range", "nulls", "window"):
                if key in self.model_fields_set:
                    raise MistakeAt((key,), f"{key}: has no meaning without cursor:")
        elif self.chunks is not None and self.chunks.column not in (None, self.cursor):
            raise MistakeAt(("chunks", "column"), "with cursor:, chunks are cut by that column")
        return self

    @model_validator(mode="after")
    def _windows_alone(self) -> JdbcSource:
        if self.window is None:
            return self
        for key in ("lag", "cursor_order", "range", "chunks"):
            if key in self.model_fields_set:
                raise MistakeAt((key,), f"with window:, {key}: has no meaning; see overlap: and lag: there")
        if self.nulls == "include":
            raise MistakeAt(("nulls",), "rows without a time are in no window; write error or skip")
        return self
