"""Leases: one holder at a time, and nobody waits for the dead."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest
import sqlalchemy as sa

from esker.errors import StateError
from esker.ledger import leases as leasing
from esker.ledger.leases import Lease, LeaseTaken, held
from esker.ledger.process import this_process
from esker.ledger.state import VERSION, State, leases, text_of
from tests.ledger.states import project_in

HOLD = """
import sys
from esker.ledger.leases import LeaseTaken, held
from esker.ledger.state import State
from esker.project import load_project
project = load_project(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
state = State.open(project)
try:
    with held(state, "shop/sales"):
        print("held", flush=True)
        sys.stdin.readline()
except LeaseTaken as taken:
    print(taken.holder, flush=True)
state.close()
"""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    with closing(State.open(project_in(tmp_path))) as opened:
        yield opened


@contextmanager
def children(folder: Path, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are ready to take the lease, one line on their standard input away."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    try:
        for child in started:
            assert heard(child) == "ready"
        yield started
    finally:
        for child in started:
            child.kill()
            child.communicate()


def tell(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def heard(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def stored(state: State) -> list[str]:
    with state.begin() as connection:
        return list(connection.execute(sa.select(leases.c.name)).scalars())


def store(state: State, process: str, remaining: timedelta) -> None:
    """Write a lease as another process would have."""
    with state.begin() as connection:
        connection.execute(
            leases.insert().values(
                name="shop/sales", holder="other", process=process, until=text_of(state.now() + remaining)
            )
        )


def test_a_lease_is_given_back_when_the_block_ends(state: State) -> None:
    """Whether the work succeeds or fails, the next may begin."""

    def fail() -> None:
        with held(state, "shop/sales"):
            raise RuntimeError("stop")

    with held(state, "shop/sales"):
        assert stored(state) == ["shop/sales"]
    assert stored(state) == []
    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert stored(state) == []


def test_a_second_holder_is_turned_away(state: State) -> None:
    """Who comes second is told who is at work, and the first one is not disturbed."""
    _, pid, _ = this_process().split(" ")
    with held(state, "shop/sales"):
        with pytest.raises(LeaseTaken, match=f"is held by process {pid} on"), held(state, "shop/sales"):
            pass
        with held(state, "shop/rates"):
            assert sorted(stored(state)) == ["shop/rates", "shop/sales"]
        assert stored(state) == ["shop/sales"]


def test_a_lease_that_ran_out_is_taken(state: State) -> None:
    """A host that vanished keeps nobody waiting for ever, and its late return releases nothing."""
    store(state, "elsewhere 7 1", timedelta(seconds=-1))
    with held(state, "shop/sales"):
        assert stored(state) == ["shop/sales"]
    assert stored(state) == []


def test_another_hosts_lease_is_respected_until_it_runs_out(state: State) -> None:
    """Nobody can know whether a process on another host lives."""
    store(state, "elsewhere 7 1", timedelta(seconds=30))
    with pytest.raises(LeaseTaken, match="process 7 on elsewhere"), held(state, "shop/sales"):
        pass


@pytest.mark.parametrize("boot", ["/0c5d4a3e-8f3b-4a6e-9d55-2f1f7b1c9e00", ""])
def test_another_machine_of_the_same_name_keeps_its_lease(state: State, boot: str) -> None:
    """Its process cannot be found here, and is at work all the same. Earlier versions wrote no boot."""
    name, space, _ = this_process().split(" ")[0].split("/")
    store(state, f"{name}/{space}{boot} 999999999 1", timedelta(seconds=30))
    with pytest.raises(LeaseTaken, match=f"process 999999999 on {name}"), held(state, "shop/sales"):
        pass


def test_who_lost_a_lease_does_not_release_the_next_holders(state: State) -> None:
    """A process that slept too long finds its lease taken and leaves it alone."""
    with held(state, "shop/sales"), state.begin() as connection:
        connection.execute(leases.update().values(holder="the next one"))
    assert stored(state) == ["shop/sales"]


def lost(lease: Lease, *, within: float) -> bool:
    """Tell whether a lease is lost before so many seconds are over."""
    until = time.monotonic() + within
    while not lease.is_lost and time.monotonic() < until:
        time.sleep(0.01)
    return lease.is_lost


def test_a_holder_learns_that_somebody_else_has_its_lease(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the next renewal, and for good."""
    monkeypatch.setattr(leasing, "_RENEWAL", 0.05)
    with held(state, "shop/sales") as lease:
        assert not lost(lease, within=0.2)
        with state.begin() as connection:
            connection.execute(leases.update().values(holder="the next one"))
        assert lost(lease, within=10)


def test_a_lease_that_cannot_be_renewed_is_lost_before_others_take_it(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the database a holder knows by its clock; if nobody took it meanwhile, it goes on."""
    monkeypatch.setattr(leasing, "_RENEWAL", 0.05)
    monkeypatch.setattr(leasing, "_DURATION", timedelta(seconds=1))
    monkeypatch.setattr(leasing, "_MARGIN", timedelta(seconds=0.5))

    def fail() -> NoReturn:
        raise StateError("the database", "is away")

    with held(state, "shop/sales") as lease:
        assert not lost(lease, within=1.2)
        with monkeypatch.context() as patch:
            patch.setattr(state, "begin", fail)
            assert lost(lease, within=10)
        lease.renew(state)
        assert not lost(lease, within=0.2)


@pytest.mark.process
@pytest.mark.parametrize("collected", [True, False])
def test_a_killed_holders_lease_is_free_at_once(tmp_path: Path, state: State, collected: bool) -> None:
    """After kill -9 the next run starts without waiting, also while the dead process is a zombie."""
    with children(tmp_path, 1) as (child,):
        tell(child)
        assert heard(child) == "held"
        with pytest.raises(LeaseTaken, match=f"process {child.pid} on"), held(state, "shop/sales"):
            pass
        child.kill()
        if collected:
            child.wait()
        else:
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, and not collected
        with held(state, "shop/sales"):
            assert stored(state) == ["shop/sales"]


@pytest.mark.process
def test_exactly_one_of_racing_processes_wins(tmp_path: Path) -> None:
    """However close they start, also in a fresh project: one holds the lease, the others learn its name."""
    project_in(tmp_path)
    with children(tmp_path, 3) as started:
        for child in started:
            tell(child)
        answers = {child.pid: heard(child) for child in started}
        (winner,) = (pid for pid, answer in answers.items() if answer == "held")
        losers = [answer for pid, answer in answers.items() if pid != winner]
        assert [answer.split(" on ")[0] for answer in losers] == [f"process {winner}"] * 2
    with closing(sqlite3.connect(tmp_path / ".esker" / "state.db")) as database:
        assert database.execute("select version from esker_state").fetchall() == [(VERSION,)]
