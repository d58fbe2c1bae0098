"""Leases keep runs polite: two runs of one pipeline do not start side by side.

They do not keep tables safe; the epoch in the ledger does, inside the commit. A holder that dies is
noticed at once on its own host, elsewhere when its lease runs out.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from esker.errors import StateError
from esker.ledger.process import is_gone, this_process
from esker.ledger.state import State, leases, text_of

_DURATION = timedelta(seconds=60)
_RENEWAL = 15.0


class LeaseTaken(Exception):
    """Somebody else holds the lease."""

    def __init__(self, name: str, process: str) -> None:
        host, pid, _ = process.split(" ")
        self.holder = f"process {pid} on {host.partition('/')[0]}"
        super().__init__(f'lease "{name}" is held by {self.holder}')


class _SomebodyWasFaster(Exception):
    """The lease changed between our look and our write."""


@contextmanager
def held(state: State, name: str) -> Iterator[None]:
    """Hold a lease while the block runs, or raise LeaseTaken."""
    holder = str(uuid4())
    _acquire(state, name, holder)
    done = threading.Event()
    thread = threading.Thread(
        target=_renew, args=(state, name, holder, done), name="esker-lease", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        # A lease that cannot be given back runs out by itself; the work under it is done all the same.
        with suppress(StateError), state.begin() as connection:
            connection.execute(leases.delete().where(leases.c.name == name, leases.c.holder == holder))


def _acquire(state: State, name: str, holder: str) -> None:
    while True:
        try:
            _take(state, name, holder)
        except _SomebodyWasFaster:
            continue  # look again: they hold it now, or have given it back
        return


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


def _renew(state: State, name: str, holder: str, done: threading.Event) -> None:
    while not done.wait(_RENEWAL):
        try:
            until = text_of(state.now() + _DURATION)
            with state.begin() as connection:
                connection.execute(
                    leases.update()
                    .where(leases.c.name == name, leases.c.holder == holder)
                    .values(until=until)
                )
        except StateError:
            continue  # the database may come back; the commit is fenced without it
