"""A pipeline: source, columns, table and mode, as users declare them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from cronsim import CronSim, CronSimError
from pydantic import BeforeValidator, Field, field_validator, model_validator

from esker.project.columns import AnyColumn, ColumnDeclaration
from esker.project.declaration import (
    Declaration,
    Duration,
    MistakeAt,
    Name,
    Share,
    Size,
    Switch,
    TableName,
    Texts,
    parse_switch,
)
from esker.project.layout import PartitionField, SortField, parse_partition_field, parse_sort_field
from esker.project.modes import DELETING, KEYED, KEYED_ONLY, MEANINGLESS, ROW_BY_ROW, WHOLE, Mode
from esker.project.readers import (
    CODEC,
    Encoding,
    ReaderName,
    contradictions,
    pick,
    unreadable_columns,
)
from esker.project.reserved import why_reserved
from esker.project.source_kinds import Source
from esker.project.sources import FilesSource
from esker.project.system_tables import reserved_ending
from esker.project.transform import AnyTransform
from esker.project.types import Column


class ChangeLog(Declaration):
    """The change log of a table."""

    keep: Duration = Field(
        timedelta(days=30),
        description="How long changes are kept; what a consumer has not read yet is kept longer. Of several "
        "pipelines that load into one table, the shortest counts.",
    )


def _log_or_none(value: Any) -> Any:
    switch = parse_switch(value)
    return {True: {}, False: None}[switch] if isinstance(switch, bool) else switch


AnyChangeLog = Annotated[
    ChangeLog | None, BeforeValidator(_log_or_none, json_schema_input_type=ChangeLog | Switch)
]


class Versions(Declaration):
    """Names of the columns that tell when a version was valid."""

    valid_from: str = Field("valid_from", min_length=1, description="When it began.")
    valid_to: str = Field(
        "valid_to", min_length=1, description="When the next one began, or the row was deleted; else null."
    )
    is_current: str = Field("is_current", min_length=1, description="It is the one that is valid now.")

    @property
    def names(self) -> tuple[str, str, str]:
        return self.valid_from, self.valid_to, self.is_current


class SmallLane(Declaration):
    """What fits into the small lane. Larger batches are written by Spark jobs.

    Rows that are handed over as Arrow lie in the process already: eight times as many fit.
    """

    max_rows: int = Field(250_000, ge=0, description="Rows of a batch.")
    max_bytes: Size = Field(256_000_000, description="Bytes of a batch, unpacked: `256MB`.")


class Guard(Declaration):
    """What is too much to happen unseen."""

    max_delete: Share | None = Field(
        None,
        description="Most of the table's rows that one batch may delete, or `replace` may leave out: `10%`, "
        "which is the default of mode `sync`; elsewhere there is none.",
    )
    min_rows: int | None = Field(
        None,
        ge=0,
        description="Least rows of a batch. By default `sync` and `replace` hold a batch without any row "
        "when the table has rows; 0 lets it happen.",
    )
    max_rows: int | None = Field(None, ge=1, description="Most rows of a batch.")
    max_quarantined: Share | None = Field(
        None,
        description="Largest share of a batch's rows that may go to the quarantine: `5%`. By default a batch "
        "is held when all of its rows would.",
    )
    times_usual: int | Literal["off"] | None = Field(
        None,
        description="A batch with more than so many times as many rows a file as usual is held; for `sync` "
        "and `replace`, one with so many times more or fewer rows. Usual is the median of the last 30 "
        "runs, once there are ten; differences of less than 10,000 rows (`sync` and `replace`: 1,000), and "
        "sizes that occurred among these runs, never count. Default: 100; `sync` and `replace`: 10. `off` "
        "switches it off.",
    )

    @field_validator("times_usual")
    @classmethod
    def _more_than_once(cls, times: int | str | None) -> int | str | None:
        if isinstance(times, int) and times < 2:
            raise ValueError("write 2 or more, or off")
        return times


class Pipeline(Declaration):
    """Carry rows from one source into one table."""

    source: Source
    transform: AnyTransform | None = Field(
        None, description="SQL that makes the table's rows from the source's, before they are checked."
    )
    table: TableName = Field(description="Namespace and table: `lakehouse.sales`.")
    mode: Mode = Field(
        "append",
        description="What happens to a row: `append` adds it, `replace` swaps the whole table, `upsert` "
        "inserts, updates and deletes by key, `insert_only` adds rows whose key is new, "
        "`delete_insert` swaps all rows of the batch's keys, `sync` makes the table "
        "hold what the source holds, `scd2` keeps every version of a row, `replace_partitions` swaps the "
        "partitions of the batch's rows.",
    )
    key: list[str] = Field(
        default_factory=list,
        description="Columns that identify a row. With it, `replace` writes and logs what differs.",
    )
    order_by: str | None = Field(
        None, description="Column that tells which version of a row is newer. An older one changes nothing."
    )
    deletes: Literal["soft", "hard"] = Field(
        "soft", description="`soft` keeps a deleted row and marks it, `hard` removes it."
    )
    deleted_column: str = Field(
        "deleted", description="Boolean column that marks deleted rows, in the table and in the source."
    )
    delete_when: str | None = Field(
        None, description="SQL condition on the incoming row: where it holds, the row is a delete."
    )
    ignore_columns: list[str] = Field(
        default_factory=list, description="Columns whose change alone is no change of the row."
    )
    touch: Switch = Field(
        True, description="Store a newer `order_by` value although nothing else changed: `on` or `off`."
    )
    late: Duration = Field(
        timedelta(days=7),
        description="With `order_by`: how long a delete is remembered, so that a row which arrives later but "
        "is older stays deleted.",
    )
    changes: AnyChangeLog = Field(
        default_factory=ChangeLog,
        description="Keep a change log `<table>__changes` (modes with a key): `on`, `off`, or `{keep: 90d}`.",
    )
    lane: Literal["auto", "small", "large"] = Field(
        "auto",
        description="How a keyed batch is written: `small` in the driver process, `large` as Spark jobs.",
    )
    versions: Versions = Field(
        default_factory=Versions, description="Mode `scd2`: columns that tell when a version was valid."
    )
    small_lane: SmallLane = Field(default_factory=SmallLane)
    guard: Guard = Field(default_factory=Guard)
    contract: str | None = Field(
        None,
        description="An Open Data Contract Standard file: it says columns, layout and rules. "
        "`contracts/shop.odcs.yaml#orders` names one of several tables in it.",
    )
    bad_rows: Literal["fail", "quarantine"] | None = Field(
        None,
        description="Rows that do not fit: `fail` ends the run and loads nothing of the batch, `quarantine` "
        "puts them into `<table>__quarantine` and loads the others. Default: `quarantine` with a contract, "
        "else `fail`.",
    )
    catalog: Name | None = Field(
        None, description="A connection that is a catalog. Default: the project's catalog."
    )
    columns: dict[str, AnyColumn] = Field(
        default_factory=dict,
        description="Columns and their types. What is not declared is inferred from the data.",
    )
    partition_by: list[str] = Field(
        default_factory=list,
        description="Partition fields: `country`, `day(placed_at)`, `bucket(16, id)`.",
    )
    sort_by: list[str] = Field(
        default_factory=list,
        description="Columns by which rows are sorted within files: `placed_at desc`. Default: the key.",
    )
    format: Literal["parquet", "avro", "orc"] = Field("parquet", description="Format of data files.")
    format_version: Literal[2, 3] = Field(2, description="Iceberg table format.")
    properties: Texts = Field(
        default_factory=dict,
        description="Further Iceberg table properties. A run sets those that change here, and removes those "
        "that it has set and that are no longer here.",
    )
    column_order: Literal["table", "declared"] = Field(
        "table",
        description="Order of the table's columns: `table` leaves it as it is, `declared` brings them into "
        "the order of `columns:` or of the contract, and puts all others after them.",
    )
    readers: list[ReaderName] = Field(
        default_factory=list,
        description="Programs that must be able to read the table. What one of them cannot read is refused "
        "here and not written; `esker plan` says how the table is written for them.",
    )
    evolution: Literal["evolve", "freeze", "discard_column", "discard_row"] = Field(
        "evolve",
        description="Columns that the source sends and the table lacks, or has with a narrower type: "
        "`evolve` adds and widens them, `freeze` refuses the batch, `discard_column` leaves new ones out, "
        "`discard_row` puts rows that have a value in one into the quarantine. "
        "What is declared here is altered by `run` with `evolve`, else by `plan --apply`.",
    )
    drop_columns: list[str] = Field(
        default_factory=list, description="Columns to take out of the table, by `plan --apply`."
    )
    every: Duration | None = Field(None, description="`run --due` runs it when this time has passed.")
    cron: str | None = Field(
        None, description="`run --due` runs it when this cron expression (UTC) has come round."
    )

    @field_validator("table")
    @classmethod
    def _no_side_table(cls, table: str) -> str:
        if ending := reserved_ending(table):
            raise ValueError(f"names that end with {ending} are reserved; Esker keeps its own tables there")
        return table

    @field_validator("columns")
    @classmethod
    def _distinct(cls, columns: dict[str, ColumnDeclaration]) -> dict[str, ColumnDeclaration]:
        seen: dict[str, str] = {}
        for name in columns:
            if why := why_reserved(name):
                raise MistakeAt((name,), why)
            if other := seen.get(name.lower()):
                raise MistakeAt(
                    (name,), f'columns "{other}" and "{name}" differ in case only; Spark takes both as one'
                )
            seen[name.lower()] = name
        return columns

    @field_validator("partition_by")
    @classmethod
    def _readable(cls, fields: list[str]) -> list[str]:
        return _read_by(parse_partition_field, fields)

    @field_validator("sort_by")
    @classmethod
    def _sortable(cls, fields: list[str]) -> list[str]:
        return _read_by(parse_sort_field, fields)

    @field_validator("properties")
    @classmethod
    def _not_ours(cls, properties: dict[str, str]) -> dict[str, str]:
        for key in properties:
            if key.startswith("esker."):
                raise MistakeAt((key,), f'property "{key}" belongs to Esker')
            if key in ("format-version", "write.format.default"):
                raise MistakeAt((key,), f'property "{key}" is set by format_version: and format:')
        return properties

    @field_validator("cron")
    @classmethod
    def _cron(cls, cron: str | None) -> str | None:
        if cron is not None:
            try:
                CronSim(cron, datetime.now(UTC))
            except CronSimError as error:
                raise ValueError(f'"{cron}" is no cron expression: {error}') from None
        return cron

    @model_validator(mode="after")
    def _keys_fit_the_mode(self) -> Pipeline:
        if self.guard.max_delete is not None and self.mode not in DELETING:
            raise MistakeAt(
                ("guard", "max_delete"),
                f"mode {self.mode} deletes nothing by itself; {', '.join(DELETING)} do",
            )
        least, most = self.guard.min_rows, self.guard.max_rows
        if least is not None and most is not None and least > most:
            raise MistakeAt(("guard", "min_rows"), "min_rows is more than max_rows")
        if self.evolution == "discard_row" and self.mode not in ROW_BY_ROW:
            raise MistakeAt(
                ("evolution",),
                f"in mode {self.mode} a row that is left out would be taken for one that is gone; "
                f"discard_row is for {', '.join(ROW_BY_ROW)}",
            )
        if self.mode == "replace_partitions" and not self.partition_by:
            raise MistakeAt(("mode",), "mode replace_partitions needs partition_by:")
        if self.mode in KEYED and not self.key:
            raise MistakeAt(("mode",), f"mode {self.mode} needs key:, the columns that identify a row")
        if not self.is_keyed:
            for name in KEYED_ONLY:
                if name in self.model_fields_set:
                    modes = f"{', '.join(KEYED)}, and replace with key:"
                    raise MistakeAt((name,), f"{name}: is for modes with a key ({modes})")
        for name, why in MEANINGLESS.get(self.mode, {}).items():
            if name in self.model_fields_set:
                raise MistakeAt((name,), f"{name}: has no meaning in mode {self.mode}: {why}")
        return self

    @model_validator(mode="after")
    def _readers_can_read(self) -> Pipeline:
        if len(set(self.readers)) < len(self.readers):
            raise MistakeAt(("readers",), "a reader stands there twice")
        given = {name: getattr(self, name) for name in ("format_version", "format")}
        for what in contradictions(self.readers, **given, codec=self._codec()):
            place = (what.key, CODEC) if what.key == "properties" else (what.key,)
            raise MistakeAt(place, str(what))
        for name, what in unreadable_columns(self.readers, self.declared_columns()):
            raise MistakeAt(("columns", name), str(what))
        return self

    @model_validator(mode="after")
    def _source_fits_the_mode(self) -> Pipeline:
        self.source.check_mode(self.mode)
        return self

    @model_validator(mode="after")
    def _windows_fit_the_mode(self) -> Pipeline:
        windows = self.source.windows
        if windows is None:
            return self
        if self.mode in WHOLE or self.mode == "replace_partitions":
            raise MistakeAt(
                ("mode",), f"mode {self.mode} takes a batch for all there is, and a window is a part of it"
            )
        if self.is_keyed and self.order_by is None:
            # A window that is read late would put its older rows over newer ones.
            raise MistakeAt(("mode",), "with windows, a mode with a key needs order_by:")
        if windows.overlap and not self.is_keyed:
            raise MistakeAt(("source", "window", "overlap"), f"mode {self.mode} would add rows twice")
        return self

    @model_validator(mode="after")
    def _versions_have_columns_of_their_own(self) -> Pipeline:
        if self.mode != "scd2":
            if "versions" in self.model_fields_set:
                raise MistakeAt(("versions",), "versions: is for mode scd2")
            return self
        taken = {name.lower() for name in (*self.columns, *self.key, self.order_by or "")}
        for role, name in zip(("valid_from", "valid_to", "is_current"), self.versions.names, strict=True):
            if why := why_reserved(name):
                raise MistakeAt(("versions", role), why)
            if name.lower() in taken:
                raise MistakeAt(
                    ("mode",),
                    f'column "{name}" is kept by mode scd2; name another one with versions: {{{role}: …}}',
                )
            taken.add(name.lower())
        return self

    @model_validator(mode="after")
    def _key_identifies(self) -> Pipeline:
        for index, name in enumerate(self.key):
            if name.lower() in (other.lower() for other in self.key[:index]):
                raise MistakeAt(("key", index), f'column "{name}" stands there twice')
            if name.lower() in (column.lower() for column in self.ignore_columns):
                raise MistakeAt(("ignore_columns",), f'key column "{name}" cannot be ignored')
            if self.keeps_deleted and name.lower() == self.deleted_column.lower():
                raise MistakeAt(("key", index), f'column "{name}" marks deletes')
        if self.order_by is not None and self.order_by.lower() in (name.lower() for name in self.key):
            raise MistakeAt(("order_by",), f'column "{self.order_by}" is a part of the key')
        return self

    @model_validator(mode="after")
    def _one_schedule(self) -> Pipeline:
        if self.every is not None and self.cron is not None:
            raise MistakeAt(("cron",), "write every: or cron:, not both")
        declared = {name.lower() for name in self.columns}
        if declared and self.evolution == "freeze":
            for index, field in enumerate(self.partition_fields()):
                if field.column.split(".")[0].lower() not in declared:
                    raise MistakeAt(
                        ("partition_by", index), f'column "{field.column}" is not declared in columns:'
                    )
        if not isinstance(self.source, FilesSource):
            return self
        if self.source.format == "csv" and not self.source.header and not self.columns:
            raise MistakeAt(
                ("source", "header"), "csv without a header needs columns:, in the order of the file"
            )
        return self

    @property
    def is_keyed(self) -> bool:
        """Rows are compared by key, and what differs stands in the change log."""
        return self.mode in KEYED or (self.mode == "replace" and bool(self.key))

    @property
    def quarantines(self) -> bool:
        """Bad rows go to the quarantine, and the others are loaded."""
        return self.bad_rows == "quarantine" or (self.bad_rows is None and self.contract is not None)

    @property
    def keeps_deleted(self) -> bool:
        """Deleted rows stay in the table, marked."""
        return self.deletes == "soft" and self.mode in ("upsert", "insert_only", "sync")

    def declared_columns(self) -> tuple[Column, ...]:
        return tuple(
            Column(name, column.parsed(), column.required, column.doc)
            for name, column in self.columns.items()
        )

    def encoding(self) -> Encoding:
        """Return how the table is written: as declared, and otherwise so that all readers can read it."""
        return pick(self.readers, format_version=self.format_version, format=self.format, codec=self._codec())

    def _codec(self) -> str | None:
        return self.properties.get(CODEC) if self.format == "parquet" else None

    def partition_fields(self) -> tuple[PartitionField, ...]:
        return tuple(parse_partition_field(text) for text in self.partition_by)

    def sort_fields(self) -> tuple[SortField, ...]:
        """Return the declared sort order; by key where none is declared."""
        if "sort_by" not in self.model_fields_set:
            return tuple(SortField(name) for name in self.key)
        return tuple(parse_sort_field(text) for text in self.sort_by)


def _read_by(parse: Callable[[str], object], fields: list[str]) -> list[str]:
    """Return fields that can be read; of the first that cannot, say where it stands."""
    for index, field in enumerate(fields):
        try:
            parse(field)
        except ValueError as error:
            raise MistakeAt((index,), str(error)) from None
    return fields
