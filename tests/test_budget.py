"""The budget of the tests' time: what is over it is named, and noise is not."""

from __future__ import annotations

import json
from pathlib import Path

from tests.budget import read_budget, report, write_budget


def test_files_over_budget_are_named() -> None:
    """A file that takes far longer than its budget is named, with both figures; one within noise is not."""
    lines = report({"a.py": 200.0, "b.py": 65.0}, {"a.py": 3, "b.py": 1}, {"a.py": 60.0, "b.py": 60.0})

    assert [line for line in lines if "a.py" in line or "b.py" in line] == [
        "    3.3     1.0      3  a.py",
        "    1.1     1.0      1  b.py",
        "OVER BUDGET: a.py takes 3.3 minutes instead of 1.0",
    ]
    assert lines[-1].startswith("OVER BUDGET: the whole suite")
    assert any(line == "    4.4     2.0      4  all files" for line in lines)


def test_new_files_count() -> None:
    """A file without a budget is over it as soon as it is expensive, and not before."""
    assert not any("OVER" in line for line in report({"new.py": 20.0}, {"new.py": 1}, {}))
    assert any("OVER BUDGET: new.py" in line for line in report({"new.py": 60.0}, {"new.py": 1}, {}))


def test_only_the_most_expensive_files_are_listed() -> None:
    """Twenty files are listed, the most expensive first; the sum is of all."""
    seconds = {f"{number:02}.py": float(number) for number in range(30)}
    lines = report(seconds, dict.fromkeys(seconds, 1), seconds)
    assert [line.split()[-1] for line in lines[1:21]] == [f"{number:02}.py" for number in range(29, 9, -1)]
    assert len(lines) == 22


def test_a_budget_is_read_as_it_was_written(tmp_path: Path) -> None:
    """What was measured is the next budget; without a file there is none."""
    file = tmp_path / "budget.json"
    assert read_budget(file) == {}
    write_budget(file, {"b.py": 1.26, "a.py": 2.0})
    assert read_budget(file) == {"a.py": 2.0, "b.py": 1.3}
    assert list(json.loads(file.read_text(encoding="utf-8"))) == ["a.py", "b.py"]


def test_the_budget_in_the_tree_names_files_that_exist() -> None:
    """A file that was renamed or deleted leaves the budget too."""
    tests = Path(__file__).parent
    missing = [name for name in read_budget(tests / "budget.json") if not (tests.parent / name).exists()]
    assert missing == []
