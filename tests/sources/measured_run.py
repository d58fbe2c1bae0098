"""Runs in a process of their own, that tell what they loaded and how much memory they took at most.

python -m tests.sources.measured_run FOLDER PIPELINE...
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import esker


def main(folder: str, *pipelines: str) -> None:
    project = esker.open(folder)
    inserted = [project.run(pipeline).rows.inserted for pipeline in pipelines]
    gateway: Any = project.engine.spark.sparkContext._gateway
    peaks = {"python": peak_memory("self"), "java": peak_memory(gateway.proc.pid)}
    print(json.dumps({"inserted": inserted, **peaks}))


def peak_memory(process: int | str) -> int:
    """Most bytes that a program has held.

    Not `ru_maxrss`: a new program takes that figure over from the process that started it, here a pytest
    of any size.
    """
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main(*sys.argv[1:])
