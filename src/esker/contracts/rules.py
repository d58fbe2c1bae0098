"""Row rules of a contract as Spark expressions: one pass over the rows, however many rules there are.

Each rule is a bit of a number that a row carries: 0 for a row that keeps to all. What is wrong in words
is only put together for rows that are bad.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.project.contract.model import Bound, Contract, Limits, RowRule, Severity
from esker.project.types import literal

BROKEN = "_esker_broken"
"""Columns of a checked frame: which rules a row breaks, as bits, `_esker_broken0` first."""
GOOD = "_esker_good"
"""Column of a frame that related rules look at: the row breaks no rule on itself."""
MALFORMED_RULE, TYPE_RULE, REQUIRED_RULE = "malformed", "type", "required"
_BITS = 62
_DAYS = ("current_date", "curdate")
_CLOCK = re.compile(
    r"(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`)"
    r"|\b(?P<clock>current_timestamp|localtimestamp|now|current_date|curdate)\b(?:\s*\(\s*\))",
    re.IGNORECASE,
)
"""Functions that tell the time; texts and quoted names are left as they are."""
SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class CheckedRule:
    """A rule as the checks see it: its name, and what happens to rows that break it."""

    name: str
    severity: Severity = "error"
    limits: Limits = field(default_factory=Limits)
    bound: Bound | None = None

    @property
    def rejects(self) -> bool:
        """Rows that break it go to the quarantine."""
        return self.severity == "error" and self.bound is None

    def is_exceeded(self, count: int, rows: int) -> bool:
        """Tell whether other numbers of rows may break it than these of so many."""
        return self.severity == "error" and self.bound is not None and not self.bound.admits(count, rows)


class Related(Protocol):
    """A rule that looks at more than one row."""

    @property
    def rule(self) -> CheckedRule:
        """Its name, and what happens to rows that break it."""

    @property
    def flag(self) -> str:
        """The column by which `mark` tells which rows break it."""

    def mark(self, rows: DataFrame, arrival: tuple[str, ...]) -> DataFrame:
        """Return the rows with the flag beside them. `arrival` are columns that tell which came first."""

    def told(self) -> Expression:
        """Return what is wrong with a row that breaks it, in words."""


_BUILT_IN = tuple(CheckedRule(name) for name in (MALFORMED_RULE, TYPE_RULE, REQUIRED_RULE))


@dataclass(frozen=True)
class RowRules:
    """The rules that rows of a pipeline are checked by, in the order of their bits."""

    conditions: tuple[RowRule, ...] = ()
    related: tuple[Related, ...] = ()
    limits: Limits = field(default_factory=Limits)
    """Of all rows that go to the quarantine."""

    @classmethod
    def of(cls, contract: Contract | None, related: tuple[Related, ...] = ()) -> RowRules:
        if contract is None:
            return cls()
        conditions = tuple(rule for rule in contract.rules if isinstance(rule, RowRule))
        return cls(conditions, related, contract.limits)

    def at(self, moment: datetime) -> RowRules:
        """Return the same rules with the clock stopped: rows may be checked more than once, and alike."""
        return replace(
            self,
            conditions=tuple(
                replace(rule, condition=stopped(rule.condition, moment)) for rule in self.conditions
            ),
        )

    @property
    def is_empty(self) -> bool:
        """There are none but those that every row is checked by."""
        return not self.conditions and not self.related

    @property
    def all(self) -> tuple[CheckedRule, ...]:
        own = (CheckedRule(r.name, r.severity, r.limits, r.bound) for r in self.conditions)
        return (*_BUILT_IN, *own, *(related.rule for related in self.related))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold the bits."""
        return tuple(f"{BROKEN}{index}" for index in range(-(-len(self.all) // _BITS)))

    def is_good(self, built_in: Sequence[Expression]) -> Expression:
        """Return whether a row breaks none of the rules on itself that would reject it."""
        good = F.lit(True)
        for test in built_in:
            good = good & test
        for rule in self.conditions:
            if rule.severity == "error" and rule.bound is None:
                good = good & ~_is_broken(rule)
        return good

    def broken(self, built_in: Sequence[str]) -> list[Expression]:
        """Return the columns with the bits; `built_in` are SQL for the built-in checks that a row breaks."""
        tests = [*built_in, *(broken_sql(rule.condition) for rule in self.conditions)]
        tests += [f"coalesce({related.flag}, false)" for related in self.related]
        found = []
        for index, name in enumerate(self.columns):
            part = tests[index * _BITS : (index + 1) * _BITS]
            # One text for all: each expression that is built from here is a few calls into Java.
            bits = (f"CASE WHEN {test} THEN {1 << bit}L ELSE 0L END" for bit, test in enumerate(part))
            found.append(F.expr(" | ".join(bits)).alias(name))
        return found

    def is_rejected(self) -> Expression:
        """Return whether a row breaks a rule that sends it to the quarantine."""
        found = F.lit(False)
        for index, name in enumerate(self.columns):
            part = self.all[index * _BITS : (index + 1) * _BITS]
            bits = sum(1 << bit for bit, rule in enumerate(part) if rule.rejects)
            found = found | (F.col(name).bitwiseAND(F.lit(bits).cast("bigint")) != 0)
        return found

    def names(self) -> Expression:
        """Return the names of the rules that a bad row breaks."""
        named = (
            f"CASE WHEN {is_broken} THEN {literal(rule.name)} END"
            for rule, is_broken in zip(self.all, self._bits(), strict=True)
            if rule.rejects
        )
        # A function on lists keeps Spark from making one method of what stands around it. That is wanted:
        # bad rows are too few for Java to compile so large a method, and interpreted it takes seconds.
        return F.expr(f"filter(array({', '.join(('NULL', *named))}), name -> name IS NOT NULL)")

    def reasons(self) -> list[Expression]:
        """Return what is wrong with a row by the contract's rules, in words; each is null for nothing."""
        rules, broken = self.all, list(self._bits())
        first, last = len(_BUILT_IN), len(_BUILT_IN) + len(self.conditions)
        own = (
            f"CASE WHEN {is_broken} THEN {_told(condition)} END"
            for condition, rule, is_broken in zip(
                self.conditions, rules[first:last], broken[first:last], strict=True
            )
            if rule.rejects
        )
        told = F.expr(f"nullif(concat_ws('; ', {', '.join(('NULL', *own))}), '')")
        related = (
            F.when(F.expr(is_broken), rule.told())
            for rule, is_broken in zip(self.related, broken[last:], strict=True)
            if rule.rule.rejects
        )
        return [told, *related]

    def counts(self, *, rejecting: bool | None = None) -> dict[str, Expression]:
        """Return for each rule an aggregate that counts the rows which break it.

        With `rejecting`, only for those that send rows to the quarantine, or only for those that do not.
        """
        return {
            name: F.count(F.when(broken, 1)) for name, broken in self.breaches(rejecting=rejecting).items()
        }

    def breaches(self, *, rejecting: bool | None = None) -> dict[str, Expression]:
        """Return for each rule whether a row breaks it; `rejecting` as for `counts`."""
        return {
            rule.name: F.expr(is_broken)
            for rule, is_broken in zip(self.all, self._bits(), strict=True)
            if rejecting is None or rule.rejects == rejecting
        }

    def tally(self, bits: Mapping[str, Sequence[int | None]]) -> dict[str, int]:
        """Count the rows that break each rule, given the bits of all rows."""
        rules = self.all
        counted = dict.fromkeys((rule.name for rule in rules), 0)
        for index, name in enumerate(self.columns):
            for value, times in Counter(bits[name]).items():
                left = value or 0
                while left:
                    low = left & -left
                    counted[rules[index * _BITS + low.bit_length() - 1].name] += times
                    left ^= low
        return counted

    def _bits(self) -> Iterator[str]:
        """Yield for each rule SQL that is true for a row which breaks it."""
        for index, name in enumerate(self.columns):
            for bit in range(min(_BITS, len(self.all) - index * _BITS)):
                yield f"({name} & {1 << bit}L) != 0"


@dataclass(frozen=True)
class Tally:
    """How many rows of a batch break which rule."""

    rows: int = 0
    rejected: int = 0
    """Rows that go to the quarantine for it."""
    broken: Mapping[str, int] = field(default_factory=dict)

    def figures(self) -> dict[str, int]:
        """Return how many rows were read, are bad, and break each rule."""
        return {"rows_read": self.rows, "rows_bad": self.rejected, **self.broken}


def _is_broken(rule: RowRule) -> Expression:
    return F.expr(broken_sql(rule.condition))


def broken_sql(condition: str) -> str:
    """Return SQL that is true where a condition does not hold."""
    # On a line of its own: a condition may end with a comment.
    return f"coalesce(NOT ({condition}\n), false)"


def stopped(condition: str, moment: datetime) -> str:
    """Return a condition in which the clock stands still."""

    def replaced(found: re.Match[str]) -> str:
        if found["text"] is not None:
            return found["text"]
        text = moment.astimezone(UTC).isoformat(timespec="microseconds")
        clock = f"TIMESTAMP '{text}'"
        return f"CAST({clock} AS DATE)" if found["clock"].lower() in _DAYS else clock

    return _CLOCK.sub(replaced, condition)


def _told(rule: RowRule) -> str:
    """Return SQL for what is wrong with a row that breaks a rule, in words."""
    if rule.shown is None:
        return literal(rule.why)
    shown = f"substring(CAST({rule.shown} AS STRING), 1, {SHOWN_CHARACTERS})"
    before, after = literal(f'column "{rule.column}": "'), literal(f'" {rule.why}')
    otherwise = literal(f'column "{rule.column}" {rule.why}')
    return f"coalesce(concat({before}, {shown}, {after}), {otherwise})"
