"""How long does a command take that has nothing to do, or only looks?

A project with one pipeline, loaded once: a table with a key, its change log and its record of loaded files.
Then `esker run` with nothing new, `esker show` and `esker plan` are started in turn with `esker check`, which
reads the project file and nothing else. None of them may start Java: a program in its place
records every start. The figures that count are the ratios.

    python benchmarks/bench_idle.py [--rows N] [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.wanted import Wanted
from tests.folder import Folder
from tests.no_java import FakeJava

COMMANDS = {"check": ["check"], "run": ["run"], "show": ["show", "shop.sales"], "plan": ["plan"]}
MOST = 2.5
"""Times as long as `esker check`."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    wanted = Wanted()
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        folder = Folder(
            Path(scratch) / "project",
            pipelines={"sales": Folder.files_pipeline(mode="upsert", key=["id"])},
        )
        rows = [(number, f"{number / 7:.2f}", "x" * 50) for number in range(arguments.rows)]
        folder.write_csv("landing/a.csv", ["id", "amount", "note"], rows)
        ask(folder, ["run"], dict(os.environ))
        fake = FakeJava(Path(scratch) / "java")
        taken = measure(folder, {**os.environ, **fake.environment}, arguments.rounds)
        print(f"commands on a table of {arguments.rows:,} rows, medians of {arguments.rounds} rounds:")
        beside = statistics.median(taken["check"])
        print(f"  check  [{beside:.2f} s]")
        for name, seconds in taken.items():
            if name != "check":
                ratio = statistics.median(seconds) / beside
                goal = wanted.at_most(f"esker {name}", ratio, MOST)
                print(
                    f"  {name:6} {ratio:5.2f} times as long ({goal})   [{statistics.median(seconds):.2f} s]"
                )
        print(f"  Java was {'started' if fake.was_started else 'not started'}")
        wanted.at_most("starts of Java", float(fake.was_started), 0)
    wanted.end()


def measure(folder: Folder, environment: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Return how many seconds each command took, in turn. The first round is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(rounds + 1):
        for name, command in COMMANDS.items():
            started = time.monotonic()
            ask(folder, command, environment)
            if number:
                taken[name].append(time.monotonic() - started)
    return taken


def ask(folder: Folder, command: list[str], environment: dict[str, str]) -> None:
    """Run a command of Esker's in a process of its own, and wait for its end."""
    program = "from esker.cli.main import main; main()"
    subprocess.run(
        [sys.executable, "-c", program, *command, "--project", str(folder.path)],
        env=environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )


if __name__ == "__main__":
    main()
