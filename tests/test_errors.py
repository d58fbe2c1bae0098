"""Promises that every error keeps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from esker.errors import EskerError, InvalidProject, Problem

EXIT_STATUSES = {1, 2, 3, 4, 5, 6, 130}


def tree(root: type[EskerError]) -> Iterator[type[EskerError]]:
    yield root
    for kind in root.__subclasses__():
        yield from tree(kind)


TESTS = Path(__file__).parent
ERRORS = [kind for kind in tree(EskerError) if kind.__module__.startswith("esker.errors")]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_is_documented(kind: type[EskerError]) -> None:
    """It has a sentence for the reference, a code of the known form, and a documented exit status."""
    assert kind.__doc__ is not None
    assert kind.__doc__.strip().endswith(".")
    assert "code" in vars(kind)
    assert re.fullmatch(r"ESK(-[A-Z]+)?-\d{3}", kind.code)
    assert kind.exit_status in EXIT_STATUSES


def test_every_error_is_raised_somewhere_in_the_tests() -> None:
    """A class that no test meets, by name or code, may be raised by nothing, or say what is not so."""
    met = {word for path in TESTS.rglob("*.py") if path != Path(__file__) for word in _met(path)}
    named = {kind for kind in ERRORS if kind.__name__ in met or kind.code in met}
    # What only gathers others is raised by nothing.
    families = {kind for kind in ERRORS if kind.code.endswith("-000")}
    unknown = {kind.__name__ for kind in ERRORS if kind not in named | families}
    assert unknown == set()


def _met(path: Path) -> Iterator[str]:
    """Yield names that a test uses and codes in its texts, without imports, comments and docstrings."""
    module = ast.parse(path.read_text())
    statements = (node.value for node in ast.walk(module) if isinstance(node, ast.Expr))
    docs = {id(value) for value in statements if isinstance(value, ast.Constant)}
    for node in ast.walk(module):
        if isinstance(node, ast.Name | ast.Attribute):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield from re.findall(r"ESK-[-\w]+", node.value)


def test_every_code_means_one_error() -> None:
    """A code that is searched for leads to one situation."""
    codes = [kind.code for kind in ERRORS]
    assert sorted(codes) == sorted(set(codes))


def test_an_error_as_a_document() -> None:
    """What happened, why, and what to do: the same four keys everywhere."""
    error = EskerError("broken", reason="worn out", remedy="mend it")
    assert error.as_json() == {
        "code": "ESK-000",
        "message": "broken",
        "reason": "worn out",
        "remedy": "mend it",
    }
    assert str(error) == "broken"


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("wrong"), "wrong"),
        (Problem("wrong", "esker.yml"), "esker.yml: wrong"),
        (Problem("wrong", "esker.yml", 3, 7, "a.b"), "esker.yml:3:7: a.b: wrong"),
    ],
)
def test_a_problem_begins_with_its_place(problem: Problem, text: str) -> None:
    """Editors and people jump to file:line:column."""
    assert str(problem) == text


def test_remedies_of_several_problems_are_kept_once() -> None:
    """What is to be done is said for each problem, but not twice."""
    error = InvalidProject(
        [Problem("a", remedy="do x"), Problem("b", remedy="do y"), Problem("c", remedy="do x")]
    )
    assert error.remedy == "do x\ndo y"
    assert error.reason == "3 problems in the project file."
