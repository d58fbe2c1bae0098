"""The history of runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from esker.ledger.run_id import new_run_id
from esker.ledger.runs import last_success, latest_runs, record_end, record_start
from esker.ledger.state import State, runs
from tests.ledger.states import project_in

START = """
import sys
from esker.ledger.runs import record_start
from esker.ledger.state import State
from esker.project import load_project
record_start(State.open(load_project(sys.argv[1])), "shop", "sales", "killed")
print("started", flush=True)
sys.stdin.readline()
"""
ERROR = {"code": "ESK-000", "message": "broken", "reason": "", "remedy": ""}


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    with closing(State.open(project_in(tmp_path))) as opened:
        yield opened


def run(state: State, pipeline: str, status: str, project: str = "shop") -> str:
    run_id = new_run_id()
    record_start(state, project, pipeline, run_id)
    record_end(state, run_id, status, {"rows": {"read": 3}}, ERROR if status == "failed" else None)
    return run_id


def test_a_run_is_remembered_from_start_to_end(state: State) -> None:
    """While it runs it shows as running; afterwards with result, times and error."""
    record_start(state, "shop", "sales", "one")
    (running,) = latest_runs(state, "shop", "sales")
    assert (running.status, running.finished_at, running.result) == ("running", None, None)
    record_end(state, "one", "failed", {"rows": {"read": 3}}, ERROR)
    (ended,) = latest_runs(state, "shop", "sales")
    assert (ended.status, ended.result, ended.error) == ("failed", {"rows": {"read": 3}}, ERROR)
    assert ended.finished_at is not None
    assert ended.started_at <= ended.finished_at


def test_the_newest_runs_come_first(state: State) -> None:
    """Also when several start within the same moment: run ids sort by time."""
    made = [run(state, "sales", "succeeded") for _ in range(5)]
    found = [record.run_id for record in latest_runs(state, "shop", "sales", limit=3)]
    assert len(found) == 3
    assert set(found) <= set(made)
    started = [record.started_at for record in latest_runs(state, "shop", "sales", limit=9)]
    assert started == sorted(started, reverse=True)


def test_the_last_success_is_not_the_last_run(state: State) -> None:
    """A failure hides no earlier success, and success is per pipeline and project."""
    assert last_success(state, "shop", "sales") is None
    good = run(state, "sales", "succeeded")
    run(state, "sales", "failed")
    run(state, "rates", "succeeded")
    run(state, "sales", "succeeded", project="mart")
    found = last_success(state, "shop", "sales")
    assert found is not None
    assert found.run_id == good
    assert latest_runs(state, "shop", "nothing") == []


def test_a_running_run_stays_running_beside_others(state: State) -> None:
    """The start of another run declares only the dead as failed."""
    record_start(state, "shop", "sales", "one")
    record_start(state, "shop", "sales", "two")
    assert {record.status for record in latest_runs(state, "shop", "sales", limit=9)} == {"running"}


@pytest.mark.process
def test_a_killed_run_shows_as_failed(tmp_path: Path, state: State) -> None:
    """Nobody wrote down how it ended, but it is known at once; the next run writes it down."""
    with subprocess.Popen(
        [sys.executable, "-c", START, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "started\n"
        assert latest_runs(state, "shop", "sales")[0].status == "running"
        child.kill()
    (killed,) = latest_runs(state, "shop", "sales")
    assert (killed.status, killed.finished_at) == ("failed", None)
    assert killed.error is not None
    assert killed.error["code"] == "ESK-RUN-002"

    record_start(state, "shop", "sales", "next")
    with state.begin() as connection:
        query = sa.select(runs.c.status, runs.c.finished_at).where(runs.c.run_id == "killed")
        status, finished = connection.execute(query).one()
    assert status == "failed"
    assert finished is not None
