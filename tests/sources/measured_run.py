"""A run in a process of its own, that tells what it loaded and how much memory it took at most.

python -m tests.sources.measured_run FOLDER PIPELINE
"""

from __future__ import annotations

import json
import resource
import sys

import esker


def main(folder: str, pipeline: str) -> None:
    result = esker.open(folder).run(pipeline)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"inserted": result.rows.inserted, "batches": result.batches, "peak": peak}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
