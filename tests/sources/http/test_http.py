"""Load from a REST API that behaves, and from one that does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import stamina

from esker.errors import (
    BackfillUnsuitable,
    Held,
    NoColumns,
    PartsMissing,
    SourceRefused,
    SourceUnavailable,
)
from esker.sources.http import reader
from tests.folder import Folder
from tests.sources.rest_server import Api, Asked, body, reset, serving, status

pytestmark = pytest.mark.spark

MakeFolder = Callable[..., Folder]
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
CURSOR = {
    "path": "/cursor",
    "paginator": {"type": "cursor", "cursor_path": "next", "cursor_param": "at"},
    "data_selector": "data.items",
}


@pytest.fixture
def api() -> Iterator[Api]:
    with serving(Api()) as api:
        yield api


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """Repeat requests at once, as often as declared."""
    with stamina.set_testing(True, attempts=3, cap=True):
        yield


def pipeline(make_folder: MakeFolder, api: Api, source: dict[str, Any], **keys: Any) -> Folder:
    declared = {"type": "http", "url": api.url, "retries": 2, **source}
    return make_folder(pipelines={"sales": {"source": declared, "table": "shop.sales", **keys}})


def day(ago: int, hour: int = 12) -> str:
    return f"{TODAY - timedelta(days=ago) + timedelta(hours=hour):%Y-%m-%dT%H:%M:%SZ}"


def by_windows(make_folder: MakeFolder, api: Api, **keys: Any) -> Folder:
    """Windows of a day, of the last five days."""
    window = {"every": "1d", "start": day(5, 0), **keys.pop("window", {})}
    source = {
        **CURSOR,
        "incremental": {"start_param": "since", "end_param": "until"},
        "window": window,
        **keys.pop("source", {}),
    }
    return pipeline(
        make_folder, api, source, **{"mode": "upsert", "key": ["id"], "order_by": "changed", **keys}
    )


def begins(ago: int) -> Callable[[Asked], bool]:
    return lambda asked: asked.query.get("since") == day(ago, 0)


# --- whole ---------------------------------------------------------------------------------------


def test_all_of_it_in_each_run(make_folder: MakeFolder, api: Api) -> None:
    """What the API no longer has is deleted; the same again is not loaded again; pages may repeat rows."""
    api.records = [{"id": number, "name": f"n{number}"} for number in (*range(8), 7)]
    folder = pipeline(make_folder, api, CURSOR, mode="sync", key=["id"], deletes="hard")
    first = folder.run().rows
    assert (first.read, first.inserted, first.duplicates) == (9, 8, 1)
    again = folder.run()
    assert (again.rows.read, again.batches) == (0, 0)
    assert "the source has nothing new" in again.notes
    api.records = [{"id": number, "name": "x" if number == 3 else f"n{number}"} for number in range(8)][1:]
    folder.change(guard={"max_delete": "50%"})
    second = folder.run().rows
    assert (second.updated, second.missing) == (1, 1)
    assert folder.rows("shop.sales", "id") == [(number,) for number in range(1, 8)]
    full = folder.open().backfill("sales", full=True)
    assert (full.status, full.rows.unchanged) == ("succeeded", 7), full.error
    with pytest.raises(BackfillUnsuitable):
        folder.open().backfill("sales", since="2026-01-01", until="2026-01-02")


def test_values_are_exact(make_folder: MakeFolder, api: Api) -> None:
    """Numbers come as the API writes them, and types are those of JSON lines."""
    api.raw = (
        '[{"id": 1, "amount": 12345678901234.50, "big": 9223372036854775807, "in": {"a": [1, 2]}},\n'
        ' {"id": 2, "amount": 0.10, "big": 1, "in": null}]'
    )
    columns = {"amount": "decimal(20,2)"}
    folder = pipeline(make_folder, api, {"path": "raw"}, mode="replace", columns=columns)
    folder.run()
    rows = folder.rows("shop.sales", "id", "amount", "big")
    assert rows == [(1, Decimal("12345678901234.50"), 9223372036854775807), (2, Decimal("0.10"), 1)]
    assert ([1, 2],) in folder.rows("shop.sales", "in.a")


def test_records_that_are_no_objects(make_folder: MakeFolder, api: Api) -> None:
    """They are bad rows, kept in the quarantine; the others are loaded."""
    api.raw = '[{"id": 1}, 5, "x", {"id": 2}]'
    folder = pipeline(make_folder, api, {"path": "raw"}, bad_rows="quarantine")
    counts = folder.run().rows
    assert (counts.inserted, counts.quarantined) == (2, 2)


def test_children(make_folder: MakeFolder, api: Api) -> None:
    api.records = [{"id": number} for number in range(5)]
    api.comments = {str(post): [{"n": 10 * post + at} for at in range(2)] for post in range(5)}
    parent = {"path": "/linked", "paginator": {"type": "header_link"}, "include": {"post_id": "id"}}
    source = {"path": "/posts/{id}/comments", "parent": parent}
    folder = pipeline(make_folder, api, source, mode="upsert", key=["post_id", "n"])
    assert folder.run().rows.inserted == 10
    assert folder.rows("shop.sales", "post_id", "n") == [
        (n // 10, n) for n in (0, 1, *range(10, 12), 20, 21, 30, 31, 40, 41)
    ]


@pytest.mark.parametrize(
    "fault", [status(500), body(b""), body(b'{"data": {'), reset], ids=["500", "empty", "cut", "reset"]
)
def test_a_failure_half_way_changes_nothing(make_folder: MakeFolder, api: Api, fault: Any) -> None:
    """A part is never taken for the whole: what is stored stays, and the next run reads it all."""
    api.records = [{"id": number} for number in range(8)]
    folder = pipeline(
        make_folder, api, CURSOR, mode="sync", key=["id"], deletes="hard", guard={"max_delete": "100%"}
    )
    folder.run()
    api.records = [{"id": number} for number in range(1, 9)]
    api.always = [(lambda asked: asked.query.get("at") == "6", fault)]
    with pytest.raises(SourceUnavailable):
        folder.run()
    assert [row[0] for row in folder.rows("shop.sales", "id")] == list(range(8))
    api.always = []
    counts = folder.run().rows
    assert (counts.inserted, counts.missing) == (1, 1)


def test_records_in_the_folder_of_the_project(
    make_folder: MakeFolder, api: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where they are kept on a cluster. Its name begins with a dot, and Spark reads them all the same."""
    (tmp_path / ".esker").mkdir()
    monkeypatch.setattr(reader, "_folder", lambda opening: tmp_path / ".esker")
    api.records = [{"id": number} for number in range(8)]
    assert pipeline(make_folder, api, CURSOR).run().rows.inserted == 8
    assert list((tmp_path / ".esker").iterdir()) == []


def test_peek(make_folder: MakeFolder, api: Api) -> None:
    """One page is enough for a look."""
    api.records = [{"id": number, "name": "a"} for number in range(8)]
    peeked = pipeline(make_folder, api, CURSOR).open().peek("sales", 2)
    assert peeked.columns == ("id", "name")
    assert len(peeked.rows) == 2
    assert len(api.asked) == 1


def test_errors_name_the_pipeline(make_folder: MakeFolder, api: Api) -> None:
    """Several may ask one server: whoever calls from Python sees which one failed."""
    api.allowed = lambda asked: False
    opened = pipeline(make_folder, api, CURSOR).open()
    calls: list[Callable[[], Any]] = [
        lambda: opened.run("sales"),
        lambda: opened.peek("sales"),
        lambda: opened.read("sales"),
        lambda: opened.apply(opened.plan()),
        lambda: opened.infer_contract("sales"),
    ]
    for call in calls:
        with pytest.raises(SourceRefused, match=r'^pipeline "sales": "http://') as caught:
            call()
        assert caught.value.as_json()["message"].startswith('pipeline "sales": ')


# --- by windows ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lane", "kind"), [("small", "timestamp"), ("large", "timestamp"), ("small", "string"), ("large", "date")]
)
def test_deletes_that_do_not_say_when(make_folder: MakeFolder, api: Api, lane: str, kind: str) -> None:
    """Each is as new as its window: not as the batch's newest row, and not older than all in a gap."""
    columns = {"id": "bigint", "changed": kind, "v": "bigint", "deleted": "boolean"}

    def row(id: int, ago: int, v: int) -> dict[str, Any]:
        moment = day(ago)
        return {"id": id, "changed": moment[:10] if kind == "date" else moment, "v": v, "_at": moment}

    def delete(id: int, ago: int) -> dict[str, Any]:
        return {"id": id, "deleted": True, "_at": day(ago, 13)}

    api.records = [row(1, 5, 1), row(2, 5, 1), row(3, 2, 3), row(4, 5, 1)]
    api.records += [delete(1, 4), row(5, 4, 1), delete(4, 1)]
    folder = by_windows(make_folder, api, columns=columns, lane=lane, source={"retries": 0})
    api.always = [(begins(3), status(500))]
    with pytest.raises(PartsMissing):
        folder.run()
    api.always = []
    api.records += [row(1, 3, 2), row(9, 3, 1), delete(2, 3), delete(3, 3)]
    counts = folder.run().rows
    live = {row[0]: row[1] for row in folder.rows("shop.sales", "id", "v", "deleted") if not row[2]}
    assert live == {1: 2, 3: 3, 5: 1, 9: 1}
    assert (counts.inserted, counts.deleted, counts.stale) == (2, 1, 1)


@pytest.mark.parametrize(("first", "error"), [([], None), ([{}], NoColumns), ([5, "x"], NoColumns)])
def test_windows_without_columns(
    make_folder: MakeFolder, api: Api, first: list[Any], error: type[Exception] | None
) -> None:
    """Before there is a table: windows without records are passed by, those with records never are."""
    api.records = [{"id": 1, "changed": day(1)}]
    answer = json.dumps({"data": {"items": first}}).encode()
    api.always = [(begins(5), body(answer))]
    folder = by_windows(make_folder, api, window={"max_windows": 1}, bad_rows="quarantine")
    opened = folder.open()
    if error is not None:
        for call in (opened.run, opened.read):
            with pytest.raises(error):
                call("sales")
        folder.change(columns={"id": "bigint", "changed": "string"})
        with pytest.raises(Held):
            folder.run()
        counts = folder.open().approve("sales").rows
        assert (counts.quarantined, counts.inserted) == (len(first), 1)
        return
    assert opened.read("sales").to_pylist() == api.records
    result = folder.run()
    assert (result.rows.inserted, result.notes) == (1, ())


def test_a_row_after_its_delete_in_one_batch(make_folder: MakeFolder, api: Api) -> None:
    """In a later window: it lives, though a row of another key is newer than both."""
    api.records = [
        {"id": 1, "changed": day(5), "v": 1},
        {"id": 1, "deleted": True, "_at": day(4)},
        {"id": 1, "changed": day(3), "v": 2},
        {"id": 2, "changed": day(2), "v": 1},
        {"id": 2, "deleted": True, "_at": day(1)},
    ]
    folder = by_windows(make_folder, api, columns={"changed": "timestamp", "deleted": "boolean"})
    assert folder.run().batches == 1
    live = [row[:2] for row in folder.rows("shop.sales", "id", "v", "deleted") if not row[2]]
    assert live == [(1, 2)]


@pytest.mark.parametrize("lane", ["small", "large"])
def test_versions_end_with_the_window_of_their_delete(make_folder: MakeFolder, api: Api, lane: str) -> None:
    """Also when it is read late, behind a newer version."""
    api.records = [
        {"id": 1, "changed": day(5), "v": 1},
        {"id": 1, "deleted": True, "_at": day(4)},
        {"id": 1, "changed": day(3), "v": 2},
        {"id": 2, "changed": day(2), "v": 1},
    ]
    columns = {"changed": "timestamp", "deleted": "boolean"}
    folder = by_windows(make_folder, api, columns=columns, lane=lane, mode="scd2", source={"retries": 0})
    api.always = [(begins(4), status(500))]
    with pytest.raises(PartsMissing):
        folder.run()
    api.always = []
    for _ in range(2):
        folder.run()
        found = [
            (v, str(begun)[:10], str(ended)[:10])
            for id, v, begun, ended in folder.rows("shop.sales", "id", "v", "valid_from", "valid_to")
            if id == 1
        ]
        assert found == [(1, day(5)[:10], day(4)[:10]), (2, day(3)[:10], "None")]


def test_windows(make_folder: MakeFolder, api: Api) -> None:
    """Each is asked for once. A changed record comes with a later one, and no run reads what is covered."""
    api.records = [{"id": number, "changed": day(5 - number), "v": 1} for number in range(5)]
    folder = by_windows(make_folder, api)
    assert folder.run().rows.inserted == 5
    assert sum("at" not in asked.query for asked in api.asked) == 5
    assert folder.run().rows.read == 0
    assert len(api.asked) == 5
    [line] = folder.open().windows("sales")
    assert line.status == "covered"


def test_records_that_become_visible_late(make_folder: MakeFolder, api: Api) -> None:
    """With a time of three minutes before, in a window that was read: they are found by the overlap."""
    api.records = [{"id": 0, "changed": day(3)}]
    api.clock = lambda: datetime.now(UTC) - timedelta(days=2)
    folder = by_windows(make_folder, api, window={"overlap": "10m"})
    assert folder.run().rows.inserted == 1
    late = TODAY - timedelta(days=2, minutes=3)
    api.records.append({"id": 1, "changed": f"{late:%Y-%m-%dT%H:%M:%SZ}"})
    api.clock = lambda: datetime.now(UTC)
    counts = folder.run().rows
    assert (counts.read, counts.inserted) == (1, 1)
    assert folder.run().rows.read == 0


def test_a_window_in_which_the_api_is_down(make_folder: MakeFolder, api: Api) -> None:
    """The others are loaded, the run says what is missing, and the next one fetches it."""
    api.records = [{"id": number, "changed": day(5 - number % 5), "v": 1} for number in range(20)]
    folder = by_windows(make_folder, api)
    api.always = [(lambda asked: begins(3)(asked) and "at" in asked.query, status(500))]  # its second page
    with pytest.raises(PartsMissing, match="1 part of the source could not be read") as caught:
        folder.run()
    assert day(3, 0)[:10] in caught.value.reason
    assert {row[0] for row in folder.rows("shop.sales", "id")} == {n for n in range(20) if n % 5 != 2}
    assert "failed" in [line.status for line in folder.open().windows("sales")]
    api.always = []
    asked = len(api.asked)
    assert folder.run().rows.inserted == 4
    assert all(begins(3)(each) for each in api.asked[asked:])
    assert [row[0] for row in folder.rows("shop.sales", "id")] == sorted(range(20), key=lambda n: repr((n,)))
    assert folder.run().rows.read == 0


def test_clocks(make_folder: MakeFolder, api: Api) -> None:
    """No window counts as read before it is over by the API's clock, however far this machine's is ahead."""
    ahead = timedelta(days=3)
    api.clock = lambda: datetime.now(UTC) - ahead
    api.records = [{"id": number, "changed": day(5 - number)} for number in range(2)]
    folder = by_windows(make_folder, api)
    assert [row["id"] for row in folder.open().peek("sales").rows] == ["1"]
    assert folder.run().rows.inserted == 2
    assert folder.open().windows("sales")[0].until == TODAY - ahead
    asked = len(api.asked)
    assert folder.run().rows.read == 0
    assert len(api.asked) == asked + 1  # the first that may be over
    # Those that this machine's clock took for past, by then.
    api.records += [{"id": number, "changed": day(5 - number)} for number in range(2, 5)]
    api.clock = lambda: datetime.now(UTC)
    assert folder.run().rows.inserted == 3
    # One that is fast does not count: this machine's clock is behind it.
    api.clock = lambda: datetime.now(UTC) + timedelta(days=400)
    assert folder.run().rows.read == 0
    assert folder.open().windows("sales")[0].until == TODAY


def test_windows_without_records_and_too_large_ones(make_folder: MakeFolder, api: Api) -> None:
    """Nothing is there for days, then far too much in one: it is halved."""
    folder = by_windows(make_folder, api, window={"split_at": 5})
    assert folder.run().rows.read == 0
    folder = by_windows(make_folder, api, window={"split_at": 5})
    api.records = [{"id": hour, "changed": day(2, hour)} for hour in range(20)]
    assert folder.run().rows.inserted == 20
    asked = len(api.asked)
    assert folder.run().rows.read == 0
    assert len(api.asked) == asked
    again = folder.open().backfill("sales", since=day(2, 0), until=day(1, 0))
    assert (again.status, again.rows.read, again.rows.updated) == ("succeeded", 20, 0), again.error
