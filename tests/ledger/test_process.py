"""Telling the living from the dead."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from esker.ledger import process
from esker.ledger.process import is_gone, is_of_another_boot, this_process

SAY_WHO = "from esker.ledger.process import this_process as t; print(t(), flush=True); input()"


def test_this_process_lives() -> None:
    """A process finds itself alive, under a name with its host and number."""
    host, pid, started = this_process().split(" ")
    assert (host.partition("/")[0], pid) == (socket.gethostname(), str(os.getpid()))
    assert started.isdigit() or started == "-"
    assert not is_gone(this_process())


def test_a_process_of_another_host_is_never_known_to_be_gone() -> None:
    """Its number means nothing here."""
    assert not is_gone("elsewhere 999999999 1")


def test_a_number_that_nobody_has_is_gone() -> None:
    """No process of that number, no holder."""
    host, _, _ = this_process().split(" ")
    assert is_gone(f"{host} 999999999 1")


def test_a_process_of_another_container_is_never_known_to_be_gone() -> None:
    """Containers may share a host name and a boot; their process ids mean nothing to each other."""
    name, _, boot = this_process().split(" ")[0].split("/")
    assert not is_gone(f"{name}/pid:[1]/{boot} 999999999 1")


def test_a_process_of_another_machine_of_this_name_is_never_known_to_be_gone() -> None:
    """Outside of containers the namespace of process ids is the same on all machines: the boot is not."""
    name, space, _ = this_process().split(" ")[0].split("/")
    other = f"{name}/{space}/0c5d4a3e-8f3b-4a6e-9d55-2f1f7b1c9e00 999999999 1"
    assert not is_gone(other)
    assert is_of_another_boot(other)


def test_what_earlier_versions_wrote() -> None:
    """They did not say which boot it was: it may have been another machine, and its lease runs out."""
    name, space, _ = this_process().split(" ")[0].split("/")
    for former in (f"{name}/{space} 999999999 1", f"{name}/{space} {os.getpid()} 1"):
        assert not is_gone(former)
        assert is_of_another_boot(former)
    assert not is_of_another_boot(f"{name}/pid:[1] 7 1")
    assert not is_of_another_boot("elsewhere 7 1")
    assert not is_of_another_boot(this_process())


@pytest.mark.parametrize("unknown", ["_boot", "_space"])
def test_where_machines_cannot_be_told_apart_nobody_is_known_to_be_gone(
    monkeypatch: pytest.MonkeyPatch, unknown: str
) -> None:
    monkeypatch.setattr(process, unknown, lambda: "-")
    host, _, _ = this_process().split(" ")
    assert not is_gone(f"{host} 999999999 1")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells when a process started")
def test_a_reused_number_is_another_process() -> None:
    """The number of a dead process may belong to a stranger by now; the start time tells."""
    host, pid, started = this_process().split(" ")
    assert is_gone(f"{host} {pid} {int(started) - 1}")


@pytest.mark.process
def test_a_process_is_gone_when_it_has_ended() -> None:
    """It lives while it runs; killed it is gone, already before its parent has noticed."""
    with subprocess.Popen(
        [sys.executable, "-c", SAY_WHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        who = child.stdout.readline().strip()
        assert not is_gone(who)
        child.kill()
        child.stdout.read()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
        assert is_gone(who)
    assert is_gone(who)
