"""After a capability was tried, other programs read the tables, and see what Spark sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from esker.errors import CannotExport
from tests.conformance.capabilities import sales_of
from tests.conformance.lakes import KINDS, Lake
from tests.readers import duckdb, pyiceberg, spark, trino
from tests.readers.exported import text_for
from tests.readers.seen import Reader, agree

READERS = {
    "spark": "Spark 4.1",
    "pyiceberg": "PyIceberg 0.12",
    "duckdb": "DuckDB 1.5",
    "trino": "Trino 476",
}
"""By the words of the page."""
FOR_OTHERS = ("works", "works__changes", "works__quarantine")
"""Tables that are for everybody."""


@contextmanager
def opened(name: str, project: Path, request: pytest.FixtureRequest) -> Iterator[Reader]:
    """Open the catalog of a project with a reader. Raises CannotExport, before any server is started."""
    if name == "spark":
        with spark.opened(project) as reader:
            yield reader
        return
    text_for(name, project)
    if name == "pyiceberg":
        with pyiceberg.opened(project) as reader:
            yield reader
    elif name == "duckdb":
        with duckdb.opened(project, request.getfixturevalue("duckdb_home")) as reader:
            yield reader
    else:
        with trino.opened(project, request.getfixturevalue("trino")) as reader:
            yield reader


def read_by_all(
    kind: str, capability: str, lake: Lake, folder: Path, request: pytest.FixtureRequest
) -> dict[str, str]:
    """Read what a capability has left. Returns by reader: "yes", or why it cannot."""
    project = sales_of(lake, folder).path
    found = {"spark": "yes"}
    with opened("spark", project, request) as measure:
        tables = _tables(measure)
        assert "shop.works" in tables
        for name in READERS:
            if name == "spark":
                continue
            unread = KINDS[kind].unread.get(name)
            if unread is not None:
                with pytest.raises(CannotExport) as caught:
                    text_for(name, project)
                assert caught.value.reason == f"{unread}."
            elif (name, capability) in UNREAD:
                with (
                    pytest.raises(Exception, match=UNREAD[name, capability]),
                    opened(name, project, request) as reader,
                ):
                    agree({"spark": measure, name: reader}, "shop.works")
            else:
                with opened(name, project, request) as reader:
                    for table in tables:
                        agree({"spark": measure, name: reader}, table)
            found[name] = unread or "yes"
    return found


UNREAD = {("trino", "version 3"): "PUFFIN"}
"""What a reader says to an encoding that it does not know; test_encodings.py has them all."""


def _tables(measure: Reader) -> list[str]:
    assert isinstance(measure, spark.SparkReader)
    rows = measure.spark.sql("SHOW TABLES IN lake.shop").collect()
    return [f"shop.{row.tableName}" for row in rows if row.tableName in FOR_OTHERS]
