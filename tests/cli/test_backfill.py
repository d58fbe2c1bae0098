"""`esker backfill`, as it is typed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from esker.cli.main import app
from tests.folder import Folder
from tests.sources.oai_server import Feed, moment, serving

pytestmark = pytest.mark.spark


@pytest.fixture
def feed() -> Iterator[Feed]:
    with serving(Feed(moment("13:00"))) as feed:
        yield feed


@pytest.fixture
def folder(make_folder: Callable[..., Folder], feed: Feed) -> Folder:
    """A harvest that has read records of 12:00 to 13:00, of which the feed shows more by now."""
    window = {"every": "15m", "start": "2026-01-01T12:00:00Z"}
    source = {"type": "oai_pmh", "url": feed.url, "metadata_prefix": "marc", "window": window}
    keys = {"table": "shop.sales", "mode": "upsert", "key": ["id"], "order_by": "last_modified"}
    folder = make_folder(pipelines={"sales": {"source": source, **keys}})
    feed.put("known", "12:05")
    folder.run()
    feed.put("late", "12:20")
    feed.put("later", "12:40")
    return folder


def backfill(folder: Folder, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["backfill", "sales", *arguments, "--project", str(folder.path)])


def rows(result: Result) -> dict[str, Any]:
    [told] = json.loads(result.stdout)["pipelines"]
    assert told["pipeline"] == "sales"
    found: dict[str, Any] = told["rows"]
    return found


def test_a_range_of_time(folder: Folder) -> None:
    """Only what lies in it is read, and a table is printed for people."""
    result = backfill(folder, "--from", "2026-01-01T12:15", "--to", "2026-01-01T12:30", "--json")
    assert result.exit_code == 0, result.output
    assert (rows(result)["read"], rows(result)["inserted"]) == (1, 1)
    assert folder.rows("shop.sales", "id") == [("known",), ("late",)]
    printed = backfill(folder, "--from", "2026-01-01T12:00")
    assert printed.exit_code == 0, printed.output
    assert "sales" in printed.stdout
    assert folder.rows("shop.sales", "id") == [("known",), ("late",), ("later",)]


def test_records_by_their_ids(folder: Folder) -> None:
    """One that the feed lacks ends the command with 4; the others are loaded."""
    folder.write("ids.txt", "later\nnobody\n")
    result = backfill(folder, "--ids", str(folder.path / "ids.txt"), "--json")
    assert result.exit_code == 4, result.output
    assert rows(result)["inserted"] == 1
    assert folder.rows("shop.sales", "id") == [("known",), ("later",)]


def test_what_does_not_suit(folder: Folder) -> None:
    """A feed by windows has no whole; nothing is changed."""
    result = backfill(folder, "--full", "--json")
    assert result.exit_code == 2, result.output
    [told] = json.loads(result.stdout)["pipelines"]
    assert told["error"]["code"].startswith("ESK-")
    assert folder.rows("shop.sales", "id") == [("known",)]
