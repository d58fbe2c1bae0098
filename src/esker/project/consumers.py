"""Who is told of changes, as users declare it."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from esker.project.declaration import Declaration, MistakeAt, Switch, TableName
from esker.project.pipelines import Pipeline
from esker.project.target_kinds import Target

_QUERY = re.compile(r"\s*(--.*\n\s*)*select\b", re.IGNORECASE)
_FUNCTION = re.compile(r"\S+:[A-Za-z_]\w*")


class Enrichment(Declaration):
    """Rows of another table that belong to a row, put into it under a name of their own."""

    table: TableName = Field(description="The other table. It is read at one snapshot in each delivery.")
    on: dict[str, str] = Field(
        min_length=1,
        description="Which rows belong together: columns of the row, each with that of the other table.",
        examples=[{"id": "work_id"}],
    )
    many: bool = Field(False, description="All rows that belong to it, as a list; otherwise one, or null.")
    columns: list[str] = Field(
        default_factory=list, description="Columns of the other table. Default: all of them."
    )


class Steps(Declaration):
    """How much is done at a time."""

    rows: int = Field(
        250_000,
        ge=1,
        description="Changes after which the offset is stored: what is sent again after a stop. A changeset "
        "is never divided.",
    )
    send: int | None = Field(
        None,
        ge=1,
        description="Messages that are handed to the target together, at most. Default: 1,000; to files, "
        "where they become one file, 2,000.",
    )
    spark: int = Field(
        10_000, ge=0, description="With more changes than this, Spark's executors transform and send them."
    )


class ReindexSettings(Declaration):
    """How a full reindex goes."""

    rows: int = Field(250_000, ge=1, description="Rows of a task, as far as files allow.")
    parallel: int = Field(4, ge=1, description="Tasks at a time.")
    rate: int | None = Field(
        None,
        ge=1,
        description="Most rows per second: of all tasks together that `esker reindex` does; of each one that "
        "is done by itself, with `--task`.",
    )


class Consumer(Declaration):
    """Tell a target what changes in a pipeline's table."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_alias=True)

    source: str = Field(alias="from", description="The pipeline whose table it is.")
    to: Target = Field(description="Where changes are sent.")
    start: Literal["beginning", "now", "reindex"] = Field(
        "beginning",
        description="What a new consumer is told: all changes that the log has; those from now on; or all "
        "rows, by `esker reindex`, and then what changes.",
    )
    transform: str | None = Field(
        None,
        description="Makes a message's body from a row: a function marked with `@esker.transform` "
        "(`transforms/works.py:to_work`, or module and function), or `SELECT … FROM input`, also as a "
        "file `sql/works.sql`. A row for which it gives nothing is not wanted in the target, and is "
        "deleted there. Default: the row as it is.",
        examples=["transforms/works.py:to_work", "SELECT id, upper(title) AS title FROM input"],
    )
    enrich: dict[str, Enrichment] = Field(
        default_factory=dict,
        description="Rows of other tables that the transform finds in a row, by the name of the column.",
    )
    notify: Switch = Field(
        False, description="Send only ids and changesets, for those who read the table themselves."
    )
    id: list[str] = Field(
        default_factory=list,
        description="Columns that identify a row, for tables without a key and for mode delete_insert: "
        "texts, integers, decimals, dates, times or booleans. Others are identified by the pipeline's key.",
    )
    batch: Steps = Field(default_factory=Steps)
    reindex: ReindexSettings = Field(default_factory=ReindexSettings)

    @field_validator("transform")
    @classmethod
    def _function_or_query(cls, transform: str | None) -> str | None:
        if transform is None or _QUERY.match(transform) or _FUNCTION.fullmatch(transform):
            return transform
        raise ValueError("write file and function, transforms/works.py:to_work, or SELECT … FROM input")

    @model_validator(mode="after")
    def _notified_of_nothing_else(self) -> Consumer:
        if self.notify and (self.transform is not None or self.enrich):
            key = "transform" if self.transform is not None else "enrich"
            raise MistakeAt((key,), "with notify: only ids are sent; leave one of them out")
        return self

    @property
    def query(self) -> str | None:
        """The SELECT that makes bodies, if that is the transform."""
        return self.transform if self.transform is not None and _QUERY.match(self.transform) else None

    @property
    def function(self) -> str | None:
        """Where the function stands that makes bodies, if that is the transform."""
        return self.transform if self.query is None else None

    def ids_of(self, pipeline: Pipeline) -> tuple[str, ...]:
        """Return the columns that identify a row of a pipeline's table."""
        return tuple(self.id or pipeline.key)

    def check_source(self, pipeline: Pipeline) -> None:
        """Raise MistakeAt for a pipeline whose changes cannot be told."""
        if pipeline.is_keyed and pipeline.changes is None:
            raise MistakeAt(("from",), "its pipeline keeps no change log; take changes: off out of it")
        if not pipeline.is_keyed and pipeline.mode != "append":
            raise MistakeAt(
                ("from",),
                f"mode {pipeline.mode} without a key does not tell which rows changed; give it a key",
            )
        if pipeline.mode == "delete_insert" and not self.id:
            raise MistakeAt(
                ("from",), "a key has several rows in mode delete_insert; say with id: what tells them apart"
            )
        key = {name.lower() for name in pipeline.key}
        if self.id and key and pipeline.mode != "delete_insert" and {name.lower() for name in self.id} != key:
            # A row whose id changed would leave its former document behind.
            raise MistakeAt(
                ("id",), f"rows are identified by the key, {', '.join(pipeline.key)}; leave id: out"
            )
        if not self.ids_of(pipeline):
            raise MistakeAt(("from",), "its table has no key; say with id: which columns identify a row")
