"""Texts are cut into statements where a statement ends, and nowhere else."""

from __future__ import annotations

import pytest

from esker.pipeline.sql.script import statements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;\nSELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' ; SELECT \"a;b\"", ["SELECT ';'", 'SELECT "a;b"']),
        (r"SELECT 'it\'s; one'; SELECT 'it''s; one'", [r"SELECT 'it\'s; one'", "SELECT 'it''s; one'"]),
        (r"SELECT r'\'; SELECT 2", [r"SELECT r'\'", "SELECT 2"]),
        ("SELECT hour'x;y'", ["SELECT hour'x;y'"]),
        ("SELECT `a;``b`; SELECT 2", ["SELECT `a;``b`", "SELECT 2"]),
        ("-- a; b\nSELECT 1 -- c; d\n;-- e", ["-- a; b\nSELECT 1 -- c; d"]),
        ("/* a; /* b; */ c; */ SELECT 1; /* d */ ;;", ["/* a; /* b; */ c; */ SELECT 1"]),
        ("SELECT 'open; text", ["SELECT 'open", "text"]),  # the parser says what is wrong
        (" ; \n ; ", []),
        ("-- nothing", []),
    ],
)
def test_statements(text: str, expected: list[str]) -> None:
    assert [statement.text for statement in statements(text)] == expected


def test_places() -> None:
    found = statements("SELECT 1;\n\n  SELECT\n 2; SELECT 3")
    assert [(statement.line, statement.column) for statement in found] == [(1, 1), (3, 3), (4, 5)]
