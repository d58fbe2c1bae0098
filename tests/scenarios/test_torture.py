"""Two pipelines on the same keys, alive at once, killed again and again: table and change log stay exact."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import pytest

from esker.events import Step
from esker.ledger.change_log import OP
from tests.folder import Folder
from tests.scenarios.exact_log import exact_log
from tests.scenarios.test_kill import start_mortal, wait_for_end

pytestmark = [pytest.mark.spark, pytest.mark.process]

PIPELINES = ("sales", "more")
HEADER = ["id", "at", "title", "deleted"]
Event = tuple[int, int, str, bool]


def torture(path: Path, seed: int, files: int, lives: int, **keys: Any) -> None:
    """Let both pipelines live and die, then end their work, and compare with all events in order."""
    generator = random.Random(seed)
    print(f"seed {seed}")
    folder = _project(path, **keys)
    events = _write_events(folder, generator, files)
    deaths = sum(_one_life(folder, generator) for _ in range(lives))
    assert deaths, "nobody was killed: the test proved nothing"
    print(f"{deaths} kills in {lives} lives of two pipelines")
    for pipeline in PIPELINES:
        folder.run(pipeline)
    for pipeline in PIPELINES:
        assert folder.run(pipeline).rows.read == 0

    newest = {key: (moment, title, gone) for key, moment, title, gone in sorted(events, key=lambda e: e[1])}
    rows = _stored(folder)
    assert len({row[0] for row in rows}) == len(rows), f"a key stands twice in {rows}"
    # Whether a deleted row is still there, marked, hangs on whether its delete came first.
    live = {key: (moment, title) for key, moment, title, gone in rows if not gone}
    assert live == {key: (moment, title) for key, (moment, title, gone) in newest.items() if not gone}
    _check_log(folder)


def _project(path: Path, **keys: Any) -> Folder:
    columns = {"id": "bigint", "at": "bigint", "title": "string", "deleted": "boolean"}
    return Folder(
        path / "project",
        pipelines={
            name: Folder.files_pipeline(
                f"landing/{name}/*.csv",
                **{"mode": "upsert", "key": ["id"], "order_by": "at", "columns": columns, **keys},
                source={"max_files": 1},
            )
            for name in PIPELINES
        },
    )


def _write_events(folder: Folder, generator: random.Random, files: int) -> list[Event]:
    """Write files for both pipelines: no two events of a key have the same moment, some come late."""
    events: list[Event] = []
    for number in range(files):
        for index, name in enumerate(PIPELINES):
            # Now and then a file repeats a moment of the past that the other pipeline has not used.
            moment = 2 * (number if generator.random() < 0.8 else generator.randrange(number + 1)) + index
            keys = [
                key for key in generator.sample(range(24), 8) if (key, moment) not in {e[:2] for e in events}
            ]
            batch = [(key, moment, f"{name} {number}", generator.random() < 0.2) for key in keys]
            folder.write_csv(
                f"landing/{name}/{number:03}.csv", HEADER, [(*row[:3], str(row[3]).lower()) for row in batch]
            )
            events += batch
    return events


def _one_life(folder: Folder, generator: random.Random) -> int:
    """Run both pipelines at once, each until it dies or is done; return how many died."""
    processes = []
    for pipeline in PIPELINES:
        step = generator.choice([*Step, f"{generator.uniform(0, 3):.2f}"])
        processes.append(start_mortal(folder, step, generator.choice([1, 1, 2]), "run", pipeline))
    deaths = 0
    for process in processes:
        output, _ = process.communicate(timeout=500)
        assert process.returncode in (0, -signal.SIGKILL), output.decode()
        deaths += process.returncode != 0
        wait_for_end(process.pid)
    return deaths


def _stored(folder: Folder) -> list[Event]:
    rows = [row.asDict() for row in folder.open().table("shop.sales").collect()]
    return [(row["id"], row["at"], row["title"], row.get("deleted", False)) for row in rows]


def _check_log(folder: Folder) -> None:
    """The log makes the table."""
    replayed = {row["id"]: (row["title"], row[OP] == "delete") for row in exact_log(folder)}
    live = {key: title for key, (title, gone) in replayed.items() if not gone}
    assert live == {key: title for key, _, title, gone in _stored(folder) if not gone}


@pytest.mark.soak
def test_two_pipelines_killed_again_and_again(tmp_path: Path, spark_running: None) -> None:
    """A short campaign; below are longer ones, in both lanes and format versions."""
    torture(tmp_path, seed=7, files=3, lives=2, lane="small")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("deletes", ["soft", "hard"])
@pytest.mark.parametrize("lane", ["small", "large"])
@pytest.mark.parametrize("version", [2, 3])
def test_two_pipelines_killed_at_length(
    tmp_path: Path, spark_running: None, version: int, lane: str, deletes: str, seed: int
) -> None:
    """The same for longer."""
    torture(tmp_path, seed, 30, 20, lane=lane, deletes=deletes, format_version=version)
