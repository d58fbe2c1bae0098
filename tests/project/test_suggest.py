"""Guessing what was meant."""

from __future__ import annotations

import pytest

from esker.project.suggest import closest


@pytest.mark.parametrize(
    ("word", "expected"), [("tabel", "table"), ("TABLE", "table"), ("mod", "mode"), ("xyz", None), ("", None)]
)
def test_the_nearest_word_is_found_or_none(word: str, expected: str | None) -> None:
    """A guess is made only where a word is near."""
    assert closest(word, ["table", "mode", "source"]) == expected
