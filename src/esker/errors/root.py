"""The root of all errors, and what some of them carry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar


@dataclass(frozen=True)
class Problem:
    """One thing wrong at one place of a declaration."""

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        key = f"{self.path}: " if self.path else ""
        return f"{place}: {key}{self.message}" if place else f"{key}{self.message}"


@dataclass(frozen=True)
class Tripped:
    """A guard that a batch tripped."""

    guard: str
    rows: int
    """What it has, would delete…: this is shown to a person, and approved."""
    allowed: int
    """From here on it is too much, or too little."""
    message: str

    def as_json(self) -> dict[str, Any]:
        return {"guard": self.guard, "rows": self.rows, "allowed": self.allowed, "message": self.message}


class Outcome(StrEnum):
    """What a person, or an orchestrator, should make of an error."""

    RETRY = "retry"
    """Nothing was changed, or all that was is known: the same again, a little later, may succeed."""
    UNKNOWN = "unknown"
    """Whether it landed is not known. The next run finds out; nobody may clean up before."""
    REFUSED = "refused"
    """The same again ends the same: a person has to look."""


_UNREACHABLE = 4
"""The exit status of what could not reach a source, a server or a store."""


def _rebuild(kind: type[EskerError], args: tuple[object, ...], state: dict[str, Any]) -> EskerError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


SHOWN_PARTS = 3
"""So many of several causes are told."""


class EskerError(Exception):
    """Root of all errors that Esker raises on purpose."""

    code: ClassVar[str] = "ESK-000"
    exit_status: ClassVar[int] = 1
    outcome: ClassVar[Outcome] = Outcome.REFUSED
    """A class that says nothing of its own has its parent's, and RETRY if its exit status is 4."""
    is_for_spark: ClassVar[bool] = False
    """The same may succeed where Spark is."""
    pipeline: str | None = None
    """Where it happened, as far as that is known."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "exit_status" in cls.__dict__ and "outcome" not in cls.__dict__:
            cls.outcome = Outcome.RETRY if cls.exit_status == _UNREACHABLE else Outcome.REFUSED

    def __init__(self, message: str, *, reason: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        # Many pipelines may read from one server, and their errors would look alike.
        told = super().__str__()
        is_told = not self.pipeline or f'"{self.pipeline}"' in self.message
        return told if is_told else f'pipeline "{self.pipeline}": {told}'

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders (Spark workers, test processes): rebuild from state, because
        # subclasses take arguments of their own.
        return _rebuild, (type(self), self.args, self.__dict__)

    def as_json(self) -> dict[str, Any]:
        """Return the error as the `error` object of a JSON document."""
        return {
            "code": self.code,
            "message": str(self),
            "reason": self.reason,
            "remedy": self.remedy,
        }


def is_worth_a_retry(errors: Iterable[EskerError]) -> bool:
    """Tell whether all of these errors, and there are some, may be gone when the same is done again."""
    outcomes = {error.outcome for error in errors}
    return bool(outcomes) and Outcome.REFUSED not in outcomes


def common_status(errors: Iterable[EskerError]) -> int:
    """Return the exit status for several errors: 0 for none, theirs when they agree on one, else 1."""
    statuses = {error.exit_status for error in errors}
    if not statuses:
        return 0
    return statuses.pop() if len(statuses) == 1 else 1
