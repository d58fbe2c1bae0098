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
        (f"{URL}, cursor: at, lag: 5", "append", "source.lag: rows would be read again"),
        (f"{URL}, cursor: at, lag: 5m", "delete_insert", "source.lag: rows would be read again"),
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
