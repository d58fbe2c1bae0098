"""Time of the tests, file by file, compared with the budget in `tests/budget.json`.

`make test` prints the twenty most expensive files and the sum, and `make budget` takes the times of the
last `make test` as the new budget.

A test run over budget is reported and does not fail: machines differ. Seconds of all test processes are
added up, so that they are about twice the time on the clock with two of them. The first test of a process
that uses a server or Spark pays for its start.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).with_suffix(".json")
MEASURED = Path(__file__).parents[1] / ".cache" / "test_seconds.json"
"""What the last run took; git ignores it."""
SHOWN = 20
SLOWER = 1.5
"""A file this many times over its budget is named: less is the noise of a shared machine."""
WORTH_NAMING = 30.0
"""Seconds: files over budget by less are not named."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--budget", action="store_true", help="compare the tests' time with its budget")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--budget") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Budget(), "esker-budget")


class Budget:
    """Adds up the time of each test file while the tests run."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()
        self._tests: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.partition("::")[0]
        self._seconds[name] += report.duration  # type: ignore[assignment]
        self._tests[name] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        budget = read_budget(FILE)
        terminalreporter.section("time of the tests")
        for line in report(dict(self._seconds), dict(self._tests), budget):
            terminalreporter.write_line(line)
        write_budget(MEASURED, dict(self._seconds))


def read_budget(file: Path) -> dict[str, float]:
    """Return the seconds that each test file may take; nothing when there is no budget yet."""
    if not file.exists():
        return {}
    found: dict[str, float] = json.loads(file.read_text(encoding="utf-8"))
    return found


def write_budget(file: Path, seconds: dict[str, float]) -> None:
    """Write measured seconds as the new budget."""
    file.parent.mkdir(exist_ok=True)
    measured = {name: round(taken, 1) for name, taken in sorted(seconds.items())}
    file.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")


def report(seconds: dict[str, float], tests: dict[str, int], budget: dict[str, float]) -> list[str]:
    """Return the most expensive files, the sum, and what is over budget."""
    lines = ["minutes  budget  tests  file"]
    for name in sorted(seconds, key=lambda name: -seconds[name])[:SHOWN]:
        limit = f"{budget[name] / 60:6.1f}" if name in budget else "     -"
        lines.append(f"{seconds[name] / 60:7.1f}  {limit}  {tests.get(name, 0):5}  {name}")
    whole = sum(seconds.values())
    lines.append(f"{whole / 60:7.1f}  {sum(budget.values()) / 60:6.1f}  {sum(tests.values()):5}  all files")
    for name in sorted(seconds):
        taken, allowed = seconds[name], budget.get(name, 0.0)
        if _is_over(taken, allowed):
            lines.append(f"OVER BUDGET: {name} takes {taken / 60:.1f} minutes instead of {allowed / 60:.1f}")
    if _is_over(whole, sum(budget.values()), 1.1):
        lines.append(
            "OVER BUDGET: the whole suite. Make tests cheaper, or move long campaigns to `make soak`."
        )
    return lines


def _is_over(seconds: float, allowed: float, times: float = SLOWER) -> bool:
    return seconds > allowed * times and seconds - allowed > WORTH_NAMING


def main() -> int:
    """Take the times of the last run as the budget."""
    measured = read_budget(MEASURED)
    if not measured:
        print("nothing was measured yet: run `make test` first")
        return 1
    write_budget(FILE, measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
