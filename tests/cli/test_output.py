"""What is printed of a run that failed."""

from __future__ import annotations

import pytest

from esker.cli.output import print_error
from esker.errors import BackfillUnsuitable, SourceUnavailable


def test_an_error_names_its_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    """Many pipelines may read from one server: which of them failed is said once."""
    print_error(SourceUnavailable("https://api", "It answers 500.", 3), as_json=False, pipeline="posts")
    line = capsys.readouterr().err.splitlines()[0]
    assert line == 'error ESK-SOURCE-009 pipeline "posts": "https://api" cannot be read'
    print_error(BackfillUnsuitable("posts", "Why.", "Do."), as_json=False, pipeline="posts")
    line = capsys.readouterr().err.splitlines()[0]
    assert line == 'error ESK-PROJECT-013 pipeline "posts" cannot be backfilled so'
