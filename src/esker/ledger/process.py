"""Which process is this, and does that one still live?

A process id says something only among processes that share the machine, its boot and the container. Machines
may have one host name, and containers of a machine too: the boot id tells machines apart, the namespace of
process ids tells containers apart. Where one of them cannot be known, nobody is known to be gone.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from functools import cache
from pathlib import Path

_UNKNOWN = "-"
_ENDED = "ended"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_LONGEST = 64
"""Characters of a host name that are stored."""


def this_process() -> str:
    """Return host, process id and start of this process: never the same for two processes."""
    return f"{_host()} {os.getpid()} {_started(os.getpid())}"


def is_gone(process: str) -> bool:
    """Tell whether a process is known to have ended. On other hosts nobody can know."""
    host, pid, started = process.split(" ")
    if host != _host() or _UNKNOWN in host.split("/"):
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return _started(int(pid)) not in (started, _UNKNOWN)


def is_of_another_boot(process: str) -> bool:
    """Tell whether a process ran here before this machine was started anew, or on another one of this name.

    Earlier versions of Esker did not write down which boot it was: theirs count, too.
    """
    name, space, *boot = process.partition(" ")[0].split("/") + [""] * 2
    return [name, space] == [_name(), _space()] and boot[0] != _boot()


def host_of(process: str) -> str:
    """Return the name of a process's host, for people."""
    return process.partition(" ")[0].partition("/")[0]


def _name() -> str:
    return socket.gethostname()[:_LONGEST].replace(" ", "_") or _UNKNOWN


def _host() -> str:
    """Return the host, the container, and the boot: process ids mean nothing outside of them."""
    return f"{_name()}/{_space()}/{_boot()}"


def _space() -> str:
    """Return the namespace of process ids."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        # Only Linux has more than one.
        return _UNKNOWN if sys.platform.startswith("linux") else "all"


@cache
def _boot() -> str:
    """Return what no two machines have in common, and no two starts of one."""
    try:
        if sys.platform == "darwin":
            return _of_darwin("kern.bootsessionuuid") or _UNKNOWN
        return _BOOT_ID.read_text().strip() or _UNKNOWN
    except (OSError, AttributeError):
        return _UNKNOWN


def _of_darwin(name: str) -> str:
    """Return a text that the kernel of macOS knows."""
    value = ctypes.create_string_buffer(64)
    size = ctypes.c_size_t(len(value))
    failed = ctypes.CDLL(None).sysctlbyname(
        name.encode(), value, ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return "" if failed else value.value.decode()


def _started(pid: int) -> str:
    """Return when a process started, in the kernel's ticks: a reused process id shows."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return _UNKNOWN  # not Linux, or hidden from this user: the process id alone must do
    state, *fields = text.rpartition(")")[2].split()
    # A zombie has ended. In containers without an init process nobody ever collects it.
    return _ENDED if state in ("Z", "X") else fields[18]
