"""Which process is this, and does that one still live?"""

from __future__ import annotations

import os
import socket
from pathlib import Path

_UNKNOWN = "-"
_ENDED = "ended"


def this_process() -> str:
    """Return host, process id and start of this process: never the same for two processes."""
    return f"{_host()} {os.getpid()} {_started(os.getpid())}"


def is_gone(process: str) -> bool:
    """Tell whether a process is known to have ended. On other hosts nobody can know."""
    host, pid, started = process.split(" ")
    if host != _host():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return _started(int(pid)) not in (started, _UNKNOWN)


def _host() -> str:
    """Return the host and, in a container, which one: process ids mean nothing outside it."""
    try:
        space = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}/{space}"


def _started(pid: int) -> str:
    """Return when a process started, in the kernel's ticks: a reused process id shows."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return _UNKNOWN  # not Linux, or hidden from this user: the process id alone must do
    state, *fields = text.rpartition(")")[2].split()
    # A zombie has ended. In containers without an init process nobody ever collects it.
    return _ENDED if state in ("Z", "X") else fields[18]
