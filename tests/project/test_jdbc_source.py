"""What is refused of a database source before anybody connects."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.errors import InvalidProject
from esker.project import load_project
from tests.project.test_load import write

URL = "url: 'jdbc:postgresql://db/shop', table: orders"


@pytest.mark.parametrize(
    ("source", "mode", "message"),
    [
        (
            "url: 'jdbc:oracle:thin:db', table: orders",
            "append",
            "must begin with jdbc:postgresql://, jdbc:mariadb://",
        ),
        ("url: 'jdbc:postgresql://me:pw@db/shop', table: orders", "append", "the url holds credentials"),
        (
            "url: 'jdbc:postgresql://db/shop?password=pw', table: orders",
            "append",
            "the url holds credentials",
        ),
        (
            "url: 'jdbc:postgresql://db/shop?sslmode=require&sslPassword=pw', table: orders",
            "append",
            "the url holds credentials",
        ),
        (
            f"{URL}, cursor: changed, chunks: {{size: 10}}",
            "delete_insert",
            "rows of a key may stand in several chunks",
        ),
        (f"{URL}, password: open sesame, user: me", "append", "a secret stands here as text"),
        ("url: 'jdbc:postgresql://db/shop'", "append", "write table: or query:, one of them"),
        (f"{URL}, query: SELECT 1", "append", "write table: or query:, one of them"),
        (f"{URL}, lag: 5m", "upsert", "lag: has no meaning without cursor:"),
        (f"{URL}, range: open", "upsert", "range: has no meaning without cursor:"),
        (f"{URL}, cursor_order: commit", "append", "cursor_order: has no meaning without cursor:"),
        (
            "url: 'jdbc:mariadb://db/shop', table: orders, cursor: at",
            "append",
            "source.cursor: rows that are committed late.*; write lag: .*, or cursor_order: commit",
        ),
        ("url: 'jdbc:mysql://db/shop', table: orders, cursor: at", "upsert", "committed late"),
        ("url: 'jdbc:sqlite:shop.db', table: orders, cursor: at", "delete_insert", "committed late"),
        (f"{URL}, cursor: at, range: closed", "append", "source.range: rows would be read again"),
        (f"{URL}, cursor: at, nulls: include", "append", "source.nulls: rows would be read again"),
        (f"{URL}, cursor: at", "sync", "mode sync takes a batch for all there is"),
        (f"{URL}, cursor: at", "replace", "mode replace takes a batch for all there is"),
        (f"{URL}, cursor: at, chunks: {{column: id}}", "append", "chunks are cut by that column"),
        (f"{URL}, window: {{every: 1h}}", "append", "window: has no meaning without cursor:"),
        (f"{URL}, cursor: at, lag: 5m, window: {{every: 1h}}", "upsert", "with window:, lag: has no meaning"),
        (
            "url: 'jdbc:sqlite:shop.db', table: orders, cursor: at, nulls: include, window: {every: 1h}",
            "upsert",
            "rows without a time are in no window",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, source: str, mode: str, message: str) -> None:
    key = "" if mode in ("append", "replace") else ", key: [id]"
    text = (
        f"project: s\npipelines:\n  a: {{source: {{type: jdbc, {source}}}, table: a.b, mode: {mode}{key}}}\n"
    )
    with pytest.raises(InvalidProject, match=message):
        load_project(write(tmp_path, text))


@pytest.mark.parametrize(
    ("source", "mode"),
    [
        (f"{URL}, cursor: at", "append"),
        (f"{URL}, cursor: at, lag: 5m", "append"),
        (f"{URL}, cursor: at, lag: 5", "delete_insert"),
        ("url: 'jdbc:mariadb://db/shop', table: orders, cursor: at, lag: 5m", "append"),
        ("url: 'jdbc:mariadb://db/shop', table: orders, cursor: at, lag: 5m", "upsert"),
        ("url: 'jdbc:mariadb://db/shop', table: orders, cursor: at, window: {every: 1h}", "append"),
    ],
)
def test_cursors_that_lose_no_late_row(tmp_path: Path, source: str, mode: str) -> None:
    key = "" if mode == "append" else ", key: [id]"
    text = (
        f"project: s\npipelines:\n  a: {{source: {{type: jdbc, {source}}}, table: a.b, mode: {mode}{key}}}\n"
    )
    assert load_project(write(tmp_path, text)).warnings() == ()


def test_a_cursor_in_the_order_of_commits(tmp_path: Path) -> None:
    """Somebody says so, and is warned: nothing finds out whether it is true."""
    source = "url: 'jdbc:sqlite:shop.db', table: orders, cursor: id, cursor_order: commit"
    text = f"project: s\npipelines:\n  a: {{source: {{type: jdbc, {source}}}, table: a.b}}\n"
    [warning] = load_project(write(tmp_path, text)).warnings()
    assert warning == "a: cursor_order: commit: a row that is committed behind one with a higher id is lost"
