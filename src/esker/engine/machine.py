"""How large this machine is, as far as this process may use it."""

from __future__ import annotations

import os
import re
from pathlib import Path

_MIB = 1024 * 1024
_LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory() -> int:
    """Return the memory in bytes that this process may use, container limits included."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in _LIMIT_FILES:
        try:
            sizes.append(int(Path(name).read_text()))
        except (OSError, ValueError):
            continue  # no such limit here, or the word "max"
    return min(sizes)


def default_driver_memory() -> str:
    """Return Spark's driver memory: half of the machine's, between 1 and 8 GiB."""
    return f"{max(1024, min(8192, memory() // 2 // _MIB))}m"


def cores(master: str) -> int:
    """Return how many tasks run at once on a local master; for a cluster, a modest guess."""
    if count := re.fullmatch(r"local\[(\d+)\]", master):
        return int(count[1])
    if master == "local":
        return 1
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return here if master.startswith("local") else max(8, here)
