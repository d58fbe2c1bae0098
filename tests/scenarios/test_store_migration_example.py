"""The example that moves a store over: every row, every count, and differences that were put there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from examples.store_migration import compare as comparing
from examples.store_migration import moto_server
from examples.store_migration import run as example
from examples.store_migration.compare import Comparison, Found
from examples.store_migration.switch import NotSwitched, Readers

import esker
from esker.errors import FunctionFailed
from esker.load.counts import RowCounts
from esker.pipeline.api import OpenProject
from tests.folder import SPARK
from tests.needs import missing

pytestmark = [pytest.mark.spark, pytest.mark.server]
NOTHING = Found(0, ())


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The old store, without records."""
    if not moto_server.is_installed():
        missing("moto", "make servers installs it")
    for key, value in moto_server.CREDENTIALS.items():
        monkeypatch.setenv(key, value)
    with moto_server.running() as endpoint, example.connected(endpoint) as store:
        yield store


@pytest.fixture
def project(tmp_path: Path, spark_running: None, store: Any) -> OpenProject:
    folder = tmp_path / "migration"
    example.make_project(folder, store.dynamodb.endpoint)
    with (folder / "esker.yml").open("a", encoding="utf-8") as stream:
        stream.write(f"\nspark: {json.dumps(SPARK)}\n")
    return esker.open(folder)


def rows(project: OpenProject) -> dict[str, tuple[Any, ...]]:
    """Return what the table holds: version, seconds since the beginning, values, and the mark of deletes."""
    found = project.table("catalogue.records").collect()
    return {
        row.id: (
            row.version,
            (row.changed_at.replace(tzinfo=UTC) - example.BEGIN) // timedelta(seconds=1),
            {key: row[key] for key in ("title", "creators", "note") if row[key] is not None},
            row.deleted,
        )
        for row in found
    }


def test_store_migration(project: OpenProject, store: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Import, side by side, a difference, the switch, and a write that comes too late."""
    example.fill(store)
    expected = {
        f"print-{n:03}": (1, n, example.record(n), False) for n in range(120) if n not in (5, 7, 50, 100)
    }
    for number in (5, 50, 100):
        seen = {**example.record(number), "note": "seen again"}
        expected[f"print-{number:03}"] = (2, 120 + number, seen, False)

    # A record is damaged: all batches before it are loaded, and the next run goes on there.
    place = f"{store.bucket}/print-100/2.json"
    kept = store.s3.open_input_stream(place).read()
    store.s3.delete_file(place)
    with pytest.raises(FunctionFailed) as caught:
        project.run("records")
    assert "FileNotFoundError" in caught.value.reason
    part = rows(project)
    assert part == {id: expected[id] for id in part}
    assert len(part) == 100  # two batches of fifty
    with store.s3.open_output_stream(place) as stream:
        stream.write(kept)
    rest = project.run("records").rows
    # Of print-007 the table only knows that it is deleted. What came five seconds before comes again.
    assert rest == RowCounts(read=25, inserted=19, ignored=1, unchanged=5), rest
    assert rows(project) == expected

    example.go_on(store)
    after = project.run("records").rows
    for number in (1, 2):
        changed = {**example.record(number), "title": f"Print {number}, retitled"}
        expected[f"print-{number:03}"] = (2, 300 + number, changed, False)
    # A deleted record keeps its content, with the version of the delete.
    expected["print-003"] = (2, 3, example.record(3), True)
    expected["print-900"] = (1, 311, example.record(900), False)
    expected["print-007"] = (3, 312, example.record(7), False)
    assert after == RowCounts(read=5, inserted=2, updated=2, deleted=1), after
    assert rows(project) == expected
    assert comparing.compare(project, store) == Comparison(120, NOTHING, NOTHING, NOTHING)

    readers = Readers(project, store)
    before = {id: readers.read(id) for id in ("print-001", "print-003", "print-007", "print-999")}
    assert before["print-001"] == expected["print-001"][2]
    assert (before["print-003"], before["print-999"]) == (None, None)

    example.write_with_a_slow_clock(store)
    with pytest.raises(NotSwitched, match=r"different 1: print-011"):
        readers.switch()
    assert not readers.reads_table()
    store.put("print-011", example.record(11), example.after(400))
    readers.switch()
    assert readers.reads_table()
    assert {id: readers.read(id) for id in before} == before
    readers.check_store()
    # It is the table that is read: the old store may go.
    store.put("print-001", {"title": "nobody reads this"}, example.after(500))
    assert readers.read("print-001") == before["print-001"]
    with pytest.raises(NotSwitched, match=r"1 versions more.*print-001"):
        readers.check_store()

    check_planted(project, store)
    folder = str(project.project.folder)
    assert comparing.main([folder]) == 1
    assert "different 4: print-001, print-020" in capsys.readouterr().out


def check_planted(project: OpenProject, store: Any) -> None:
    """The comparison finds what was put there: rows that are gone, that are too many, that differ."""
    table = "lake.catalogue.records"
    values = "9, timestamp '2026-11-02 08:00:00', 'planted', null, null, false"
    for statement in (
        f"DELETE FROM {table} WHERE id IN ('print-030', 'print-031')",
        f"INSERT INTO {table} (id, version, changed_at, title, creators, note, deleted) "
        f"VALUES ('print-x', {values})",
        f"UPDATE {table} SET title = if(id = 'print-020', 'planted', title), note = null, "
        "creators = if(id = 'print-022', array('planted'), creators) "
        "WHERE id IN ('print-020', 'print-022', 'print-024')",
    ):
        project.sql(statement)
    assert comparing.compare(project, store) == Comparison(
        120,
        missing=Found(2, ("print-030", "print-031")),
        extra=Found(1, ("print-x",)),
        different=Found(4, ("print-001", "print-020", "print-022", "print-024")),
    )


def test_requests_are_signed() -> None:
    """With the example of AWS's own documentation."""
    from dynamodb import signing_key

    found = signing_key(
        "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        f"{datetime(2012, 2, 15):%Y%m%d}/us-east-1/iam/aws4_request",
    )
    assert found.hex() == "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d"
