"""The state database in a real PostgreSQL, as several machines share it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from psycopg import sql

from esker.errors import ConsumerFenced, StateError
from esker.ledger.cursor_marks import CursorMark, keep_marks, read_marks
from esker.ledger.leases import LeaseTaken, held
from esker.ledger.offsets import Offset, store_offset, stored_offset
from esker.ledger.reindexes import done_tasks, record_task
from esker.ledger.run_id import new_run_id
from esker.ledger.runs import last_success, latest_runs, record_end, record_start
from esker.ledger.state import State, text_of
from esker.project import load_project
from tests.command import esker
from tests.folder import Folder
from tests.servers.ports import free_port
from tests.servers.postgres import Database, Postgres
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.server

ROUNDS = 20


@pytest.fixture
def folder(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A project whose state is in a database of its own. Needs no Spark."""
    monkeypatch.setenv("STATE_PASSWORD", database.password)
    return folder_with(tmp_path / "project", f"postgresql://{database.address}", database.user)


@pytest.fixture
def state(folder: Folder) -> Iterator[State]:
    with closing(State.open(load_project(folder.path))) as opened:
        yield opened


def folder_with(path: Path, url: str, user: str) -> Folder:
    return Folder(path, state={"url": url, "user": user, "password": "${STATE_PASSWORD}"})


def test_two_that_keep_marks_at_once(state: State, database: Database) -> None:
    """A plan takes no lease: what one of both keeps is enough."""
    key = {"project": "shop", "pipeline": "sales", "source": "x", "marks": "[]"}
    with ThreadPoolExecutor(1) as pool, database.connect() as other:
        other.execute("BEGIN")
        other.execute(
            "INSERT INTO esker_cursor_marks VALUES (%(project)s, %(pipeline)s, %(source)s, %(marks)s)", key
        )
        kept = pool.submit(keep_marks, state, "shop", "sales", "s", [CursorMark("1", frozenset())])
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
        wait_until(lambda: _has(database, waiting), "the second one waits", 20)
        other.execute("COMMIT")
        kept.result(timeout=20)
    assert read_marks(state, "shop", "sales", "s") == []
    keep_marks(state, "shop", "sales", "s", [CursorMark("2", frozenset())])
    assert read_marks(state, "shop", "sales", "s") == [CursorMark("2", frozenset())]


def _has(database: Database, query: str) -> bool:
    with database.connect() as connection:
        return bool(connection.execute(query.encode()).fetchall())


def test_runs_are_remembered(state: State, folder: Folder) -> None:
    """What one process wrote down, another one reads."""
    failed, succeeded = new_run_id(), new_run_id()
    record_start(state, "shop", "sales", failed)
    record_end(state, failed, "failed", {"rows": 0}, {"code": "ESK-000"})
    record_start(state, "shop", "sales", succeeded)
    record_end(state, succeeded, "succeeded", {"rows": 7}, None)
    with closing(State.open(load_project(folder.path))) as other:
        found = latest_runs(other, "shop", "sales", limit=5)
        newest = last_success(other, "shop", "sales")
    assert [(run.run_id, run.status) for run in found] == [(succeeded, "succeeded"), (failed, "failed")]
    assert found[1].error == {"code": "ESK-000"}
    assert newest is not None
    assert newest.result == {"rows": 7}


def test_time_comes_from_the_database(folder: Folder, database: Database) -> None:
    """Machines disagree about the time, so only the database's clock counts: here it is 75 years ahead."""
    with database.connect() as connection:
        connection.execute(
            "CREATE FUNCTION public.now() RETURNS timestamptz LANGUAGE sql "
            "AS $$ SELECT pg_catalog.now() + interval '75 years' $$"
        )
        connection.execute(
            sql.SQL("ALTER DATABASE {} SET search_path = public, pg_catalog").format(
                sql.Identifier(database.name)
            )
        )
    with closing(State.open(load_project(folder.path))) as state, database.connect() as connection:
        now = state.now()
        assert now - datetime.now(UTC) > timedelta(days=74 * 365)
        add = "INSERT INTO esker_leases VALUES (%s, %s, 'elsewhere 1 1', %s)"
        until = text_of(now + timedelta(minutes=5))
        connection.execute(add, ("shop/held", str(uuid4()), until))
        connection.execute(add, ("shop/over", str(uuid4()), text_of(now - timedelta(minutes=5))))
        with pytest.raises(LeaseTaken), held(state, "shop/held"):
            pass
        with held(state, "shop/over"):
            row = connection.execute("SELECT until FROM esker_leases WHERE name = 'shop/over'").fetchone()
    assert row is not None
    assert text_of(now) < row[0] <= until


def test_a_lease_that_ran_out_is_taken_over(state: State, database: Database) -> None:
    """Nobody can see whether a process of another machine lives: its lease ends with its time."""
    with database.connect() as connection:
        connection.execute(
            "INSERT INTO esker_leases VALUES ('shop/sales', %s, 'elsewhere 1 1', %s)",
            (str(uuid4()), text_of(state.now() - timedelta(seconds=1))),
        )
        with held(state, "shop/sales"):
            pass
        assert connection.execute("SELECT count(*) FROM esker_leases").fetchone() == (0,)


def test_an_offset_is_stored_by_whoever_holds_the_lease(
    state: State, folder: Folder, database: Database
) -> None:
    """A machine that was stopped for long stores nothing, nor does one that saw another offset."""
    one, two, three = (Offset("table", number, "run", number, number) for number in (1, 2, 3))
    with closing(State.open(load_project(folder.path))) as other, held(state, "shop/search") as lost:
        store_offset(state, "shop", "search", lost, None, one)
        with database.connect() as connection:
            before = text_of(state.now() - timedelta(seconds=1))
            connection.execute("UPDATE esker_leases SET until = %s", (before,))
        with held(other, "shop/search") as lease:
            assert stored_offset(other, "shop", "search") == one
            with pytest.raises(ConsumerFenced):
                store_offset(state, "shop", "search", lost, one, two)
            store_offset(other, "shop", "search", lease, one, three)
            with pytest.raises(ConsumerFenced):
                store_offset(other, "shop", "search", lease, one, two)
    assert stored_offset(state, "shop", "search") == three


def test_a_task_that_two_machines_do(state: State, database: Database) -> None:
    """An orchestrator that waits no longer has it done again: both have done it, and neither fails."""
    with database.connect() as connection, database.connect() as watching, ThreadPoolExecutor(1) as pool:
        with connection.transaction():
            connection.execute(
                "INSERT INTO esker_reindex_tasks (project, consumer, plan_id, number, counts, done_at) "
                "VALUES ('shop', 'search', 'a', 1, '{\"sent\": 7}', '')"
            )
            second = pool.submit(record_task, state, "shop", "search", "a", 1, {"sent": 7})
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
            wait_until(
                lambda: watching.execute(waiting, (database.name,)).fetchone() == (1,), "the second", 30
            )
        second.result(30)
    assert done_tasks(state, "shop", "search", "a") == {1: {"sent": 7}}


def side_by_side(work: Callable[[Any, Barrier], Any], subject: Any) -> list[Any]:
    """Let two processes do the same, and return what each of them found."""
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager, ProcessPoolExecutor(2, mp_context=spawn) as pool:
        barrier = manager.Barrier(2, timeout=60)
        return [each.result() for each in [pool.submit(work, subject, barrier) for _ in range(2)]]


def _take_leases(folder: Path, barrier: Barrier) -> list[bool]:
    """Try to take leases, each at the same moment as the other process."""
    won = []
    with closing(State.open(load_project(folder))) as state:
        for number in range(ROUNDS):
            barrier.wait()
            with ExitStack() as lease:
                try:
                    lease.enter_context(held(state, f"shop/{number}"))
                except LeaseTaken:
                    won.append(False)
                else:
                    won.append(True)
                barrier.wait()  # the winner holds on until the other has tried
    return won


def test_of_two_processes_one_gets_the_lease(state: State, folder: Folder) -> None:
    """Of every lease that both want at the same moment, exactly one gets it."""
    first, second = side_by_side(_take_leases, folder.path)
    assert [a + b for a, b in zip(first, second, strict=True)] == [1] * ROUNDS
    with state.begin() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM esker_leases").scalar() == 0


def _make_databases(folders: list[Path], barrier: Barrier) -> list[str]:
    """Open empty databases, each at the same moment as the other process; return what went wrong."""
    refused = []
    for folder in folders:
        project = load_project(folder)
        barrier.wait()
        try:
            State.open(project).close()
        except StateError as error:
            refused.append(error.reason)
    return refused


def test_two_processes_make_the_same_database(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first two runs of a project may start at the same moment: both find a whole database."""
    monkeypatch.setenv("STATE_PASSWORD", postgres.password)
    databases = [postgres.new_database() for _ in range(8)]
    folders = [
        folder_with(tmp_path / each.name, f"postgresql://{each.address}", each.user).path
        for each in databases
    ]
    assert side_by_side(_make_databases, folders) == [[], []]
    for each in databases:
        with each.connect() as connection:
            assert connection.execute("SELECT count(*) FROM esker_state").fetchone() == (1,)


@pytest.mark.process
def test_a_wrong_password_is_reported_and_shown_nowhere(database: Database, tmp_path: Path) -> None:
    """The command ends with status 4; the password that was tried is not in its output."""
    folder = folder_with(tmp_path / "project", f"postgresql://{database.address}", database.user)
    answers = [
        esker(folder.path, "status", *more, env={"STATE_PASSWORD": "mistaken-sesame"})
        for more in ((), ("--json",))
    ]
    for answer in answers:
        assert answer.status == 4, answer.stdout + answer.stderr
        assert "mistaken-sesame" not in answer.stdout + answer.stderr
        assert "authentication failed" in answer.stdout + answer.stderr
    assert answers[1].error["code"] == StateError.code
    assert answers[1].error["remedy"]
    assert database.address in answers[1].error["message"]


@pytest.mark.process
def test_a_closed_port_is_reported(tmp_path: Path) -> None:
    """The command ends with status 4 at once, with the address and without the password."""
    port = free_port()
    folder = folder_with(tmp_path / "project", f"postgresql://127.0.0.1:{port}/state", "esker")
    answer = esker(folder.path, "status", "--json", env={"STATE_PASSWORD": "opensesame"})
    assert answer.status == 4, answer.stdout + answer.stderr
    assert answer.error["code"] == StateError.code
    assert f"127.0.0.1:{port}" in answer.error["message"]
    assert "opensesame" not in answer.stdout + answer.stderr
