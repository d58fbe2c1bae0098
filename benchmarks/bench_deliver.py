"""How fast are all rows of a table sent to a consumer, beside the same transform as a plain Spark job?

A consumer writes JSON lines to a local disk: a reindex of a table filled by one run. A job beside it makes
the same bodies in Spark's Python workers and lets Spark write them as lines. One after the other in every
round, after both have done a table of a tenth. Esker's lines say more (id, version, key), and it counts,
keeps dead letters and verifies. Also told: the most memory that a Python worker held, with a tenth and
with all of the rows.

    python benchmarks/bench_deliver.py [--rows N] [--rounds N] [--parallel N]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa

from benchmarks.upserts import fill_by_run, works_pipeline
from benchmarks.wanted import Wanted
from esker.pipeline.api import OpenProject
from tests.folder import Folder

SPEED, MEMORY = 0.8, 1.3
TRANSFORM = """
import esker

@esker.transform
def to_work(row):
    return {"id": row["id"], "content": row["content"].upper(), "modified": row["last_modified"].isoformat()}
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_700_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parallel", type=int, default=2)
    arguments = parser.parse_args()
    tables = {"few": arguments.rows // 10, "many": arguments.rows}
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        folder = Folder(
            Path(scratch) / "project",
            pipelines={name: works_pipeline(name) for name in tables},
            consumers={name: consumer(name) for name in tables},
            spark={"master": f"local[{arguments.parallel}]", "driver_memory": "4g"},
        )
        folder.write("transforms/works.py", TRANSFORM)
        for name, rows in tables.items():
            fill_by_run(folder, name, rows)
        project = folder.open()
        ways = Ways(project, Path(scratch) / "plain", arguments.parallel)
        ways.own("few", tables["few"])
        ways.plain("few")
        few = worker_peak()
        own, plain = [], []
        for _ in range(arguments.rounds):
            own.append(timed(lambda: ways.own("many", tables["many"])))
            plain.append(timed(lambda: ways.plain("many")))
        many = worker_peak()
    wanted = Wanted()
    ratios = [alone / mine for mine, alone in zip(own, plain, strict=True)]
    print(
        f"a reindex of {arguments.rows:,} rows of about 1 kB, beside the same transform as a plain Spark job:"
    )
    speed = statistics.median(ratios)
    print(
        f"  {speed:4.2f} of its speed ({wanted.at_least('speed of a reindex', speed, SPEED)})   "
        f"[{statistics.median(own):.1f} s, {statistics.median(plain):.1f} s; "
        f"{', '.join(f'{ratio:.2f}' for ratio in ratios)}]"
    )
    print(
        f"  peak memory of a Python worker {many / few:4.2f} times that with a tenth of the rows "
        f"({wanted.at_most('peak memory of a worker', many / few, MEMORY)})   [{few} MB, {many} MB]"
    )
    wanted.end()


def consumer(name: str) -> dict[str, Any]:
    to = {"type": "files", "path": f"out/{name}"}
    return {"from": name, "start": "now", "transform": "transforms/works.py:to_work", "to": to}


class Ways:
    """Both ways to send all rows of a table."""

    def __init__(self, project: OpenProject, folder: Path, parallel: int) -> None:
        self._project, self._folder, self._parallel, self._made = project, folder, parallel, 0

    def own(self, name: str, rows: int) -> None:
        """Reindex a consumer."""
        result = self._project.reindex(name, parallel=self._parallel)
        assert result.error is None, result.error
        assert result.rows.sent == rows

    def plain(self, name: str) -> None:
        """Write the same bodies as lines, as one would by hand."""

        def made(row: dict[str, Any]) -> dict[str, Any]:
            modified = row["last_modified"].isoformat()
            return {"id": row["id"], "content": row["content"].upper(), "modified": modified}

        def lines(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for rows in batches:
                texts = [json.dumps(made(row)) for row in rows.to_pylist()]
                yield pa.RecordBatch.from_pydict({"value": texts})

        self._made += 1
        table = self._project.project.pipelines[name].table
        rows = self._project.table(table).mapInArrow(lines, "value string")
        rows.write.text(str(self._folder / str(self._made)))


def timed(work: Callable[[], None]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def worker_peak() -> int:
    """Return the most memory that a Python worker of this program's Spark ever held, in megabytes."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes()
            status = dict(
                line.split(":", 1) for line in (place / "status").read_text().splitlines() if ":" in line
            )
        except OSError:
            continue  # it ended meanwhile
        if b"pyspark.daemon" in command and _is_ours(int(status["PPid"])):
            found.append(int(status["VmHWM"].split()[0]) // 1024)
    return max(found)


def _is_ours(process: int) -> bool:
    while process > 1:
        if process == os.getpid():
            return True
        try:
            status = Path(f"/proc/{process}/status").read_text()
        except OSError:
            return False
        process = int(status.partition("PPid:")[2].split()[0])
    return False


if __name__ == "__main__":
    main()
