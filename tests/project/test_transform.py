"""A transform as users declare it: in the project file, or in a file of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.project import load_project
from tests.project.test_load import GOOD, problems, write


def test_in_the_file_or_beside_it(tmp_path: Path) -> None:
    select = "SELECT id\nFROM input\n"
    short = load_project(write(tmp_path, GOOD + "    transform: SELECT id FROM input\n")).pipeline("sales")
    assert short.transform is not None
    assert (short.transform.sql, short.transform.input) == ("SELECT id FROM input", {})
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql/sales.sql").write_text(select, encoding="utf-8")
    for text in ("sql/sales.sql", "{sql: sql/sales.sql, input: {n: 'array<int>'}}"):
        beside = load_project(write(tmp_path, GOOD + f"    transform: {text}\n")).pipeline("sales").transform
        assert beside is not None
        assert beside.sql == select


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sql/other.sql", 'esker.yml:6:5: pipelines.sales.transform: there is no file "sql/other.sql"'),
        (
            "{sql: sql/other.sql}",
            'esker.yml:6:17: pipelines.sales.transform.sql: there is no file "sql/other.sql"',
        ),
        ("transforms/works.py:works", "write SELECT … FROM input"),
        (
            "{sql: SELECT a FROM input, input: {n: number}}",
            "esker.yml:6:51: pipelines.sales.transform.input.n: unknown type",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (found,) = problems(tmp_path, GOOD + f"    transform: {text}\n")
    assert told in found
