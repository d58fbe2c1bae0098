"""What each reader makes of each way to write a table: what `readers:` of a pipeline stands on.

`make soak` tries all and writes docs/catalogs.json.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.encodings import ENCODINGS, UNREADABLE
from tests.conformance.lakes import made
from tests.conformance.reading import READERS, opened
from tests.conformance.results import Found, told, write
from tests.readers.seen import agree

SHORT = {("pyiceberg", "orc"), ("duckdb", "format version 3, rows deleted by vectors")}


def _cases() -> Iterator[Any]:
    for reader in READERS:
        for encoding in ENCODINGS:
            if reader != "spark":
                marks = [] if (reader, encoding) in SHORT else [pytest.mark.soak]
                yield pytest.param(reader, encoding, marks=marks, id=f"{reader}-{encoding.replace(' ', '_')}")


@pytest.fixture(scope="module")
def found() -> Iterator[Found]:
    """What the tests of this module find; written at their end, if a file for it is named."""
    found = Found()
    yield found
    write(found)


@pytest.mark.spark
@pytest.mark.server
@pytest.mark.parametrize(("reader", "encoding"), list(_cases()))
def test_encoding(
    reader: str,
    encoding: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    spark_running: None,
    found: Found,
) -> None:
    """It sees what Spark sees, or says that it cannot read this."""
    cells = found.encodings.setdefault(encoding, {"spark": "yes"})
    kind = "jdbc" if reader == "trino" else "sqlite"  # Trino cannot open the embedded catalog
    with told(cells, [reader]), made(kind, request, tmp_path / "lake") as lake:
        ENCODINGS[encoding](lake, tmp_path / "work")
        project = tmp_path / "work"
        limit = UNREADABLE.get((reader, encoding))
        with opened("spark", project, request) as measure:
            if limit is None:
                with opened(reader, project, request) as other:
                    agree({"spark": measure, reader: other}, "shop.works")
            else:
                with pytest.raises(Exception, match=limit.says), opened(reader, project, request) as other:
                    agree({"spark": measure, reader: other}, "shop.works")
    cells[reader] = limit.why if limit is not None else "yes"
