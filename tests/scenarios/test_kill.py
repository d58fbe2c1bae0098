"""A load that is killed (signal 9, Java included) is neither lost nor doubled by the next run."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from esker.events import Step
from tests.folder import Folder

pytestmark = [pytest.mark.spark, pytest.mark.process]
ROOT = Path(__file__).parents[2]


def run_and_kill(folder: Folder, step: str, count: int = 1, act: str = "run", what: str = "sales") -> None:
    """Run the pipeline, or do something else, in a process group of its own that dies at a step."""
    process = start_mortal(folder, step, count, act, what)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL, output.decode()
    wait_for_end(process.pid)


def start_mortal(folder: Folder, step: str, count: int, act: str, what: str) -> subprocess.Popen[bytes]:
    """Start a process group of its own that dies when it reaches a step."""
    command = [sys.executable, "-m", "tests.scenarios.killed_run", str(folder.path), step, str(count)]
    return subprocess.Popen(
        [*command, act, what],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def wait_for_end(session: int) -> None:
    """Wait until no process of a session lives any more; the dead may lie there unburied.

    Spark's Python workers are in it, and not in the process group of who started them.
    """
    for _ in range(600):
        listed = subprocess.run(["ps", "-A", "-o", "sess=,stat="], capture_output=True, text=True, check=True)
        alive = [line for line in listed.stdout.splitlines() if line.split()[0] == str(session)]
        if all(line.split()[1].startswith("Z") for line in alive):
            return
        time.sleep(0.05)
    raise AssertionError(f"a process of session {session} does not end")


def waiting_project(folder: Folder) -> list[tuple[int, str]]:
    """Load one file, leave two batches waiting, and return the rows that must be there in the end."""
    folder.change(source={"type": "files", "path": "landing/*.csv", "format": "csv", "max_files": 1})
    rows = [(number, f"row {number}") for number in range(60)]
    for index, name in enumerate("abc"):
        folder.write_csv(f"landing/{name}.csv", ["id", "text"], rows[index * 20 : index * 20 + 20])
        if name == "a":
            folder.run()
    return rows


_OF_KEYS = (Step.LOCATED, Step.WRITTEN, Step.BEFORE_LOG, Step.LOGGED)
POINTS = [(step, 1) for step in Step if step not in (*_OF_KEYS, Step.FINISHED)] + [
    (Step.STAGED, 2),
    (Step.BEFORE_COMMIT, 2),
    (Step.AFTER_COMMIT, 2),
    (Step.FINISHED, 1),
]
DANGEROUS = ((Step.BEFORE_COMMIT, 1), (Step.AFTER_COMMIT, 1))
"""Of all points, those around the commit; `make soak` has the others."""


@pytest.mark.parametrize(
    ("step", "count"),
    [
        pytest.param(
            *point, id=f"{point[0]}-{point[1]}", marks=[] if point in DANGEROUS else pytest.mark.soak
        )
        for point in POINTS
    ],
)
def test_every_row_once_after_a_kill(folder: Folder, step: Step, count: int) -> None:
    """Killed at a step of the first or second batch; the next run converges, and one more does nothing."""
    rows = waiting_project(folder)
    run_and_kill(folder, step, count)

    published = {Step.AFTER_COMMIT: 20 * count, Step.FINISHED: 40}.get(step, 20 * (count - 1))
    visible = folder.rows()
    assert len(visible) == 20 + published  # whole batches only, whatever the instant

    result = folder.run()
    assert result.rows.inserted == 40 - published
    assert folder.rows() == sorted(rows, key=repr)
    assert folder.run().rows.read == 0


@pytest.mark.soak
def test_first_run_killed_before_anything_was_published(folder: Folder) -> None:
    """Killed after the table was made and before its first commit: the next run begins at the start."""
    folder.write_csv("landing/a.csv", ["id"], [(1,), (2,)])
    run_and_kill(folder, Step.BEFORE_COMMIT)
    assert folder.rows() == []
    assert folder.run().changeset == 1
    assert folder.rows() == [(1,), (2,)]


def kill_at_random(folder: Folder, seed: int, rounds: int) -> None:
    generator = random.Random(seed)
    expected: list[tuple[int, str]] = []
    folder.change(source={"type": "files", "path": "landing/*.csv", "format": "csv", "max_files": 1})
    for number in range(rounds):
        for part in range(3):
            first = len(expected)
            rows = [(first + index, f"row {first + index}") for index in range(20)]
            folder.write_csv(f"landing/{number}-{part}.csv", ["id", "text"], rows)
            expected += rows
        run_and_kill(folder, f"{generator.uniform(0, 4):.3f}")
        if generator.random() < 0.5:
            folder.run()
            assert folder.rows() == sorted(expected, key=repr)
    folder.run()
    assert folder.rows() == sorted(expected, key=repr)
    assert folder.run().rows.read == 0


@pytest.mark.soak
def test_kills_at_random_instants(folder: Folder) -> None:
    """A kill at an instant that nobody chose (the campaign in `make soak` has many)."""
    kill_at_random(folder, seed=7, rounds=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_kills_at_random_instants_campaign(folder: Folder, seed: int) -> None:
    """Fifty kills at instants that nobody chose."""
    kill_at_random(folder, seed=seed, rounds=5)
