"""When a pipeline is due."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.ledger.run_id import new_run_id
from esker.ledger.runs import record_end, record_start
from esker.ledger.state import State
from esker.pipeline.due import due_pipelines, is_due
from esker.project import Pipeline, Project, load_project

NOON = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
PROJECT = """\
project: shop
defaults: {source: {type: files, path: a, format: csv}}
pipelines:
  hourly: {table: s.a, every: 1h}
  nightly: {table: s.b, cron: "0 3 * * *"}
  by_hand: {table: s.c}
"""


def pipeline(**schedule: str) -> Pipeline:
    source = {"type": "files", "path": "a", "format": "csv"}
    return Pipeline.model_validate({"source": source, "table": "s.a", **schedule})


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "esker.yml").write_text(PROJECT)
    return load_project(tmp_path)


@pytest.fixture
def state(project: Project) -> Iterator[State]:
    with closing(State.open(project)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("schedule", "last", "due"),
    [
        ({"every": "1h"}, None, True),
        ({"every": "1h"}, NOON - timedelta(minutes=59), False),
        ({"every": "1h"}, NOON - timedelta(minutes=59, seconds=40), True),
        ({"every": "1h"}, NOON - timedelta(hours=1), True),
        ({"every": "1h"}, NOON - timedelta(days=9), True),
        ({"cron": "0 12 * * *"}, None, True),
        ({"cron": "0 12 * * *"}, NOON - timedelta(minutes=1), True),
        ({"cron": "0 12 * * *"}, NOON, False),
        ({"cron": "0 12 * * *"}, NOON - timedelta(days=9), True),
        ({"cron": "1 12 * * *"}, NOON - timedelta(hours=1), False),
        ({"cron": "0 0 29 2 *"}, NOON - timedelta(days=30), False),
        ({}, None, False),
        ({}, NOON - timedelta(days=9), False),
    ],
)
def test_a_pipeline_is_due_from_its_time_on(
    schedule: dict[str, str], last: datetime | None, due: bool
) -> None:
    """Time passed, or the cron expression came round since the last good run, or it never ran."""
    assert is_due(pipeline(**schedule), last, NOON) is due


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_is_due_stays_due(ago: int, later: int) -> None:
    """Waiting makes nothing undue: a missed time is caught up with."""
    for schedule in ({"every": "6h"}, {"cron": "*/20 * * * *"}):
        last = NOON - timedelta(seconds=ago)
        if is_due(pipeline(**schedule), last, NOON):
            assert is_due(pipeline(**schedule), last, NOON + timedelta(seconds=later))


def test_only_success_makes_a_pipeline_undue(project: Project, state: State) -> None:
    """A failed run is tried again by the next call; a good one counts from its start."""
    now = state.now()
    assert due_pipelines(project, state, now) == ["hourly", "nightly"]
    for name, status in (("hourly", "failed"), ("nightly", "succeeded"), ("by_hand", "failed")):
        run_id = new_run_id()
        record_start(state, "shop", name, run_id)
        record_end(state, run_id, status, {}, None)
    assert due_pipelines(project, state, now) == ["hourly"]
    assert due_pipelines(project, state, now + timedelta(days=2)) == ["hourly", "nightly"]
