"""A data contract, as Esker understands it: columns, layout of the table, and rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from esker.project.types import Column, ddl

Severity = Literal["error", "warning"]
"""Rows that break a rule of severity error go to the quarantine; warnings are counted."""


@dataclass(frozen=True)
class Bound:
    """What a number must be: `mustBeLessThan: 5`, in rows or percent of them."""

    operator: str
    value: Any
    is_percent: bool = False

    def admits(self, number: Any, rows: int | None = None) -> bool:
        """Tell whether a number is as it must be. Percent are taken of `rows`."""
        if number is None:
            return False
        if self.is_percent:
            number = 100 * number / rows if rows else 0
        return bool(_ADMITS[self.operator](number, self.value))

    def is_further(self, number: float, seen: float) -> bool:
        """Tell whether a number that is not admitted is further away than one that was seen."""
        if self.operator.startswith("mustBeLess"):
            return number > seen
        if self.operator.startswith("mustBeGreater"):
            return number < seen
        if self.operator == "mustBeBetween":
            low, high = self.value
            return bool(max(low - number, number - high) > max(low - seen, seen - high))
        return number != seen

    @property
    def admits_none(self) -> bool:
        """No row may break the rule."""
        return not any(self.admits(count, 1_000_000_000) for count in (1, 10**7, 10**9))

    def __str__(self) -> str:
        shown = " and ".join(map(str, self.value)) if isinstance(self.value, list) else str(self.value)
        return f"{_WORDS[self.operator]} {shown}{' %' if self.is_percent else ''}"


_ADMITS: dict[str, Any] = {
    "mustBe": lambda number, value: number == value,
    "mustNotBe": lambda number, value: number != value,
    "mustBeGreaterThan": lambda number, value: number > value,
    "mustBeGreaterOrEqualTo": lambda number, value: number >= value,
    "mustBeLessThan": lambda number, value: number < value,
    "mustBeLessOrEqualTo": lambda number, value: number <= value,
    "mustBeBetween": lambda number, value: value[0] <= number <= value[1],
    "mustNotBeBetween": lambda number, value: not value[0] <= number <= value[1],
}
OPERATORS = tuple(_ADMITS)
_WORDS = {
    "mustBe": "must be",
    "mustNotBe": "must not be",
    "mustBeGreaterThan": "must be greater than",
    "mustBeGreaterOrEqualTo": "must be at least",
    "mustBeLessThan": "must be less than",
    "mustBeLessOrEqualTo": "must be at most",
    "mustBeBetween": "must be between",
    "mustNotBeBetween": "must not be between",
}


@dataclass(frozen=True)
class Amount:
    """A number of rows, or a share of all rows of a batch."""

    number: float
    is_share: bool = False

    def is_exceeded(self, rows: int, of: int) -> bool:
        return rows > (self.number * of if self.is_share else self.number)

    def __str__(self) -> str:
        return f"{self.number:.4g} rows" if not self.is_share else f"{100 * self.number:.4g} %"


@dataclass(frozen=True)
class Limits:
    """Beyond how many rows that break a rule the whole batch is held, or the run fails."""

    hold_above: Amount | None = None
    fail_above: Amount | None = None


@dataclass(frozen=True)
class ColumnTest:
    """What a rule asks of one column, where it asks for nothing else: it can be answered without SQL.

    A missing value keeps to every test but `there` and `not_missing`.
    """

    kind: Literal["bound", "between", "length", "one_of", "not_missing", "there", "pattern"]
    value: Any = None
    """What the column is compared with; of `bound` and `length` an operator such as `>=` and a number."""
    logical: str | None = None
    """The logical type of a bound."""


@dataclass(frozen=True)
class RowRule:
    """What must hold for each row by itself."""

    name: str
    condition: str
    """SQL that is true for a good row. Null is good: whether a value may be missing is a rule of its own."""
    why: str
    """What is wrong with the value, in words: `is less than 0`."""
    column: str | None = None
    """The column, or the path of a field, that it is about."""
    shown: str | None = None
    """SQL for the value that is shown to people."""
    severity: Severity = "error"
    limits: Limits = field(default_factory=Limits)
    bound: Bound | None = None
    """How many rows of a batch may break it, where some may: they are loaded."""
    file: str = ""
    line: int | None = None
    test: ColumnTest | None = None
    """The condition as a value; None for one that only SQL can say, or that is about a part of a column."""

    @property
    def place(self) -> str:
        """Where it stands: file and line."""
        return _place(self.file, self.line)


@dataclass(frozen=True)
class Unique:
    """No two rows may have the same values, neither in a batch nor in the table."""

    name: str
    columns: tuple[str, ...]
    severity: Severity = "error"
    limits: Limits = field(default_factory=Limits)
    bound: Bound | None = None


@dataclass(frozen=True)
class Reference:
    """The values must stand in another table."""

    name: str
    columns: tuple[str, ...]
    table: str
    to: tuple[str, ...]
    severity: Severity = "error"
    limits: Limits = field(default_factory=Limits)
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class PluggedIn:
    """A rule of another engine, which an installed package knows."""

    name: str
    engine: str
    implementation: Any
    column: str | None = None
    severity: Severity = "error"
    limits: Limits = field(default_factory=Limits)


Rule = RowRule | Unique | Reference | PluggedIn


@dataclass(frozen=True)
class Audit:
    """What must hold for the whole table as it will be, before anybody sees it."""

    name: str
    metric: Literal["row_count", "row_count_change", "freshness", "sql"]
    bound: Bound
    query: str | None = None
    """Of metric `sql`: gives one number. `{table}` stands for the table."""
    column: str | None = None
    """Of metric `freshness`: the column with the moments."""
    against: Literal["previous", "weekday"] = "previous"
    """Of metric `row_count_change`: the last snapshot, or the last one of the same day a week ago."""
    severity: Severity = "error"
    file: str = ""
    line: int | None = None

    @property
    def place(self) -> str:
        """Where it stands: file and line."""
        return _place(self.file, self.line)


def _place(file: str, line: int | None) -> str:
    return f"{file}:{line}" if line else file


@dataclass(frozen=True)
class ContractColumn:
    """A column, and what the contract says of it beyond its type."""

    column: Column
    renamed_from: str | None = None
    classification: str | None = None
    tags: tuple[str, ...] = ()
    is_unique: bool = False

    @property
    def name(self) -> str:
        return self.column.name


@dataclass(frozen=True)
class Contract:
    """What a table promises to those who read it."""

    file: str
    id: str
    version: str
    status: str
    name: str
    """Of the table, in the contract."""
    columns: tuple[ContractColumn, ...]
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    format: str | None = None
    format_version: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    audits: tuple[Audit, ...] = ()
    limits: Limits = field(default_factory=Limits)
    """Of all rows that break any rule."""
    notes: tuple[str, ...] = ()
    """What stands in the contract and is not checked."""

    @property
    def is_draft(self) -> bool:
        """Nobody has released it yet: what is loaded waits for a person."""
        return self.status in ("proposed", "draft")

    def as_declared(self) -> dict[str, Any]:
        """Return what it says in the words of a pipeline's declaration."""
        columns = {
            column.name: {
                "type": ddl(column.column.type, is_whole=True),
                "required": column.column.required,
                **({"doc": column.column.doc} if column.column.doc else {}),
                **({"renamed_from": column.renamed_from} if column.renamed_from else {}),
            }
            for column in self.columns
        }
        said: dict[str, Any] = {
            "partition_by": list(self.partition_by),
            "sort_by": list(self.sort_by),
            "format": self.format,
            "format_version": self.format_version,
            "properties": dict(self.properties),
        }
        return {"columns": columns} | {key: value for key, value in said.items() if value}
