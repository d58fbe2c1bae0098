"""A run in a process of its own, that tells what it loaded and how much memory it took at most.

python -m tests.sources.measured_run FOLDER PIPELINE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import esker


def main(folder: str, pipeline: str) -> None:
    result = esker.open(folder).run(pipeline)
    print(json.dumps({"inserted": result.rows.inserted, "batches": result.batches, "peak": peak_memory()}))


def peak_memory() -> int:
    """Most bytes that this program has held.

    Not `ru_maxrss`: a new program takes that figure over from the process that started it, here a pytest of
    any size.
    """
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
