"""The history of runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from esker.ledger.process import this_process
from esker.ledger.run_id import new_run_id
from esker.ledger.runs import last_success, latest_runs, record_end, record_start
from esker.ledger.state import State, runs, text_of
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


def _insert(state: State, statuses: dict[datetime, str], pipeline: str = "sales") -> None:
    with state.begin() as connection:
        connection.execute(
            runs.insert(),
            [
                {
                    "run_id": new_run_id(),
                    "project": "shop",
                    "pipeline": pipeline,
                    "status": status,
                    "started_at": text_of(moment),
                    "process": this_process(),
                }
                for moment, status in statuses.items()
            ],
        )


def _ages(state: State, pipeline: str = "sales") -> list[int]:
    """Return how many days ago the runs of a pipeline started, newest first."""
    now = state.now()
    return [(now - run.started_at).days for run in latest_runs(state, "shop", pipeline, limit=9_999)]


def test_old_runs_leave_the_history(state: State) -> None:
    """Kept are 90 days and the newest 1,000 runs; one that still runs, and the last success, stay longer."""
    now = state.now()
    failed = {now - timedelta(days=day): "failed" for day in range(100)}
    crowd = {now - timedelta(days=10, seconds=second): "failed" for second in range(1, 1_001)}
    _insert(state, failed | crowd | {now - timedelta(days=400): "running"})
    _insert(state, {now - timedelta(days=300): "succeeded", now - timedelta(days=301): "succeeded"})
    _insert(state, {now - timedelta(days=200): "failed"}, pipeline="rates")

    record_start(state, "shop", "sales", "next")
    ages = _ages(state)
    assert [age for age in ages if age > 90] == [300, 400]
    assert len(ages) == 1 + 1_000 + 90 + 2
    assert _ages(state, "rates") == [200]


def test_few_runs_are_kept_however_old(state: State) -> None:
    """A yearly pipeline has a history, too."""
    now = state.now()
    _insert(state, {now - timedelta(days=365 * year): "failed" for year in range(1, 20)})
    record_start(state, "shop", "sales", "next")
    assert len(_ages(state)) == 20


def test_a_run_from_before_the_machine_was_started_anew(state: State) -> None:
    """Its process cannot be looked for. The next run, which has its lease, writes down that it died."""
    name, space, _ = this_process().split(" ")[0].split("/")
    formers = (f"{name}/{space}/former", f"{name}/{space}", f"elsewhere/{space}/former")
    for number in range(len(formers)):
        record_start(state, "shop", "sales", f"former {number}")
    with state.begin() as connection:
        for number, former in enumerate(formers):
            own = runs.c.run_id == f"former {number}"
            connection.execute(runs.update().where(own).values(process=f"{former} 7 1"))
    assert {run.status for run in latest_runs(state, "shop", "sales", 9)} == {"running"}
    record_start(state, "shop", "sales", "next")
    found = {run.run_id: run.status for run in latest_runs(state, "shop", "sales", 9)}
    assert found == {"former 0": "failed", "former 1": "failed", "former 2": "running", "next": "running"}


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
