"""What a run gives back, and the exit status that follows from it."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.errors import BadRows, EskerError, Fenced, SourceNotFound
from esker.load.counts import RowCounts
from esker.pipeline.result import RunReport, RunResult, Status

COUNTS = st.builds(RowCounts, **{field.name: st.integers(0, 10**9) for field in fields(RowCounts)})
CONTRACT = BadRows("sales", 1, 2, ["x"])
SOURCE = SourceNotFound("sales", "a", "b")
FENCED = Fenced("sales", "s.a", "other", "no")


def result(status: Status, error: EskerError | None = None) -> RunResult:
    return RunResult("sales", "run", status, "s.a", error=error)


@given(COUNTS, COUNTS, COUNTS)
def test_counts_add_up(a: RowCounts, b: RowCounts, c: RowCounts) -> None:
    """Batches may be added in any grouping, and nothing added changes nothing."""
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + RowCounts() == a


@pytest.mark.parametrize(
    ("results", "status", "exit_status"),
    [
        ([], "skipped", 0),
        ([result("succeeded")], "succeeded", 0),
        ([result("skipped")], "skipped", 0),
        ([result("skipped"), result("succeeded")], "succeeded", 0),
        ([result("succeeded"), result("failed", CONTRACT)], "failed", 3),
        ([result("failed", CONTRACT), result("failed", CONTRACT)], "failed", 3),
        ([result("failed", CONTRACT), result("failed", SOURCE)], "failed", 1),
        ([result("failed", SOURCE)], "failed", 4),
        ([result("fenced", FENCED), result("succeeded")], "fenced", 5),
        ([result("fenced", FENCED), result("failed", FENCED)], "failed", 5),
    ],
)
def test_the_worst_result_decides(results: list[RunResult], status: str, exit_status: int) -> None:
    """One failure makes the whole call fail; the exit status says why when there is one reason."""
    report = RunReport(results)
    assert (report.status, report.exit_status) == (status, exit_status)
    assert report.as_json()["status"] == status


def test_the_document_has_the_documented_fields() -> None:
    """Programs rely on these names; an error is there only when there was one."""
    document = result("succeeded").as_json()
    assert {"pipeline", "run_id", "status", "table", "snapshot_id", "changeset", "rows", "position"} | {
        "bytes_written",
        "seconds",
    } <= set(document)
    assert list(document["rows"]) == [
        "read",
        "inserted",
        "updated",
        "deleted",
        "undeleted",
        "unchanged",
        "stale",
        "duplicates",
        "ignored",
        "quarantined",
        "missing",
    ]
    assert document["position"] == {"from": None, "to": None}
    assert "error" not in document
    failed = result("failed", SOURCE).as_json()
    assert failed["error"] == SOURCE.as_json()
    assert json.loads(json.dumps(failed)) == failed
