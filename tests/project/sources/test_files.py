"""What `esker check` says about a files source."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from esker.project.sources import FilesSource


def source(format: str = "csv", **keys: Any) -> FilesSource:
    return FilesSource(path="landing/*", format=format, **keys)


@pytest.mark.parametrize(
    ("name", "java"),
    [
        ("UTF-8", "UTF-8"),
        ("utf8", "UTF-8"),
        ("latin-1", "ISO-8859-1"),
        ("cp1252", "windows-1252"),
        ("Windows-1252", "windows-1252"),
        ("IBM850", "IBM850"),
    ],
)
def test_encoding_has_many_names(name: str, java: str) -> None:
    """However Python and Java call it, both are told the right one."""
    assert source(encoding=name).java_encoding == java


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"encoding": "UTF-9"}, 'unknown encoding "UTF-9"'),
        ({"encoding": "rot13"}, 'unknown encoding "rot13"'),
        ({"encoding": "UTF-16"}, "multi_line: true only"),
        ({"encoding": "latin-1", "format": "jsonl"}, "JSON lines are UTF-8"),
        ({"delimiter": '"'}, "delimiter and quote are the same character"),
        ({"options": {"emptyValue": "x"}}, "set by Esker"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_starts(keys: dict[str, Any], why: str) -> None:
    """No Spark is needed to say so."""
    with pytest.raises(ValidationError, match=why):
        source(**keys)
