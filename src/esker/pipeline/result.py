"""What a run gives back: the fields of `run --json`, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from esker.errors import EskerError, common_status
from esker.ledger.attempts import MissingWindows
from esker.ledger.entry import Position
from esker.load.counts import RowCounts

Status = Literal["succeeded", "skipped", "held", "failed", "fenced"]


@dataclass(frozen=True)
class RunResult:
    """How one run of one pipeline ended."""

    pipeline: str
    run_id: str
    status: Status
    table: str
    snapshot_id: int | None = None
    changeset: int | None = None
    rows: RowCounts = field(default_factory=RowCounts)
    position: Mapping[str, Position | None] = field(default_factory=lambda: {"from": None, "to": None})
    bytes_written: int = 0
    batches: int = 0
    pieces: int = 0
    """Files, or the like, that were read from the source."""
    log_lag: int = 0
    """Changesets that wait to be written to the change log."""
    missing_windows: MissingWindows | None = None
    """Windows of the source that are no longer tried: until a backfill, their rows are missing."""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    error: EskerError | None = None

    def as_json(self) -> dict[str, Any]:
        document = {
            "pipeline": self.pipeline,
            "run_id": self.run_id,
            "status": self.status,
            "table": self.table,
            "snapshot_id": self.snapshot_id,
            "changeset": self.changeset,
            "rows": asdict(self.rows),
            "position": dict(self.position),
            "bytes_written": self.bytes_written,
            "batches": self.batches,
            "pieces": self.pieces,
            "log_lag": self.log_lag,
            "missing_windows": None if self.missing_windows is None else self.missing_windows.as_json(),
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
        }
        if self.error is not None:
            document["error"] = self.error.as_json()
        return document


@dataclass(frozen=True)
class RunReport:
    """How all runs of one call ended."""

    pipelines: Sequence[RunResult]

    @property
    def status(self) -> Status:
        order: tuple[Status, ...] = ("failed", "fenced", "held", "succeeded")
        found = {result.status for result in self.pipelines}
        return next((status for status in order if status in found), "skipped")

    @property
    def exit_status(self) -> int:
        """0 when all went well; the errors' status when they agree on one; else 1."""
        return common_status(result.error for result in self.pipelines if result.error is not None)

    def as_json(self) -> dict[str, Any]:
        return {"status": self.status, "pipelines": [result.as_json() for result in self.pipelines]}
