"""Leases keep runs polite: two runs of one pipeline do not start side by side.

They do not keep tables safe; the epoch in the ledger does, inside the commit. A holder that dies is
noticed at once in its own container, or on its own machine until that is started anew; elsewhere when its
lease runs out. Whoever does what no commit fences, such
as sending messages, asks the lease before each step whether it is lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from esker.errors import StateError
from esker.ledger.process import host_of, is_gone, this_process
from esker.ledger.state import State, leases, text_of

_DURATION = timedelta(seconds=60)
_RENEWAL = 15.0
_MARGIN = timedelta(seconds=10)
"""So long before it runs out, a lease that could not be renewed counts as lost: what was begun has to end."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while a machine sleeps, where there is such a clock."""


class LeaseTaken(Exception):
    """Somebody else holds the lease."""

    def __init__(self, name: str, process: str) -> None:
        self.holder = f"process {process.split(' ')[1]} on {host_of(process)}"
        super().__init__(f'lease "{name}" is held by {self.holder}')


class Lease:
    """A lease that was taken. Whoever was stopped for long may have lost it since."""

    def __init__(self, name: str, holder: str, since: float) -> None:
        """`since` is by the clock of this machine, from before the lease was taken."""
        self.name, self.holder = name, holder
        self._renewed, self._is_taken = since, False

    def is_held(self, connection: sa.Connection) -> bool:
        """Tell whether nobody else has taken it; nobody does until the connection's transaction ends."""
        query = sa.select(leases.c.holder).where(leases.c.name == self.name).with_for_update()
        return connection.execute(query).scalar() == self.holder

    @property
    def is_lost(self) -> bool:
        """Somebody else has it, or may have: it was not renewed in time. Asks no database."""
        return self._is_taken or _clock() - self._renewed > (_DURATION - _MARGIN).total_seconds()

    def renew(self, state: State) -> None:
        """Let it last from now on. Raises StateError."""
        begun = _clock()
        until = text_of(state.now() + _DURATION)
        mine = (leases.c.name == self.name) & (leases.c.holder == self.holder)
        with state.begin() as connection:
            renewed = connection.execute(leases.update().where(mine).values(until=until)).rowcount
        if renewed:
            self._renewed = begun
        else:
            self._is_taken = True


def _clock() -> float:
    return time.clock_gettime(_CLOCK)


class _SomebodyWasFaster(Exception):
    """The lease changed between our look and our write."""


@contextmanager
def held(state: State, name: str) -> Iterator[Lease]:
    """Hold a lease while the block runs, or raise LeaseTaken."""
    holder = str(uuid4())
    lease = Lease(name, holder, _acquire(state, name, holder))
    done = threading.Event()
    thread = threading.Thread(target=_renew, args=(state, lease, done), name="esker-lease", daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        done.set()
        thread.join()
        # A lease that cannot be given back runs out by itself; the work under it is done all the same.
        with suppress(StateError), state.begin() as connection:
            connection.execute(leases.delete().where(leases.c.name == name, leases.c.holder == holder))


def _acquire(state: State, name: str, holder: str) -> float:
    """Take a lease, or raise LeaseTaken; return when that began."""
    while True:
        begun = _clock()
        try:
            _take(state, name, holder)
        except _SomebodyWasFaster:
            continue  # look again: they hold it now, or have given it back
        return begun


def _take(state: State, name: str, holder: str) -> None:
    now = state.now()
    mine = {"holder": holder, "process": this_process(), "until": text_of(now + _DURATION)}
    with state.begin() as connection:
        present = connection.execute(sa.select(leases).where(leases.c.name == name)).one_or_none()
        if present is None:
            try:
                connection.execute(leases.insert().values(name=name, **mine))
            except IntegrityError:
                raise _SomebodyWasFaster from None
            return
        if present.until > text_of(now) and not is_gone(present.process):
            raise LeaseTaken(name, present.process)
        taken = connection.execute(
            leases.update()
            .where(
                leases.c.name == name,
                leases.c.holder == present.holder,
                leases.c.until == present.until,  # the holder has not renewed it meanwhile
            )
            .values(**mine)
        )
        if taken.rowcount == 0:
            raise _SomebodyWasFaster


def _renew(state: State, lease: Lease, done: threading.Event) -> None:
    while not done.wait(_RENEWAL):
        # The database may come back; until then the lease knows how old it is.
        with suppress(StateError):
            lease.renew(state)
