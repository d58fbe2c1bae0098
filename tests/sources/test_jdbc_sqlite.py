"""Read an SQLite database: no server, no snapshots, and values that are not what their columns say."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from esker.errors import BadRows, CursorUnsuitable, SourceRefused, SourceUnavailable
from esker.events import Event, Reached, Step
from tests.folder import Folder
from tests.sources.restless import writing

pytestmark = pytest.mark.spark

MakeFolder = Callable[..., Folder]


def shop(make_folder: MakeFolder, *statements: str, mode: str = "append", **keys: Any) -> Folder:
    source = {"type": "jdbc", "url": "jdbc:sqlite:shop.db", "table": "orders", **keys.pop("source", {})}
    keyed = {} if mode in ("append", "replace") else {"key": ["id"]}
    pipeline = {"source": source, "table": "shop.sales", "mode": mode, **keyed, **keys}
    folder = make_folder(pipelines={"sales": pipeline})
    execute(folder, *statements)
    return folder


def execute(folder: Folder, *statements: str) -> None:
    connection = sqlite3.connect(folder.path / "shop.db")
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_types(make_folder: MakeFolder) -> None:
    """Large numbers, all digits of a double, decimals, texts, bytes and nulls come as they are."""
    folder = shop(
        make_folder,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, amount REAL, price DECIMAL(10,2), name VARCHAR(10), "
        "body BLOB, paid BOOLEAN, placed TIMESTAMP)",
        "INSERT INTO orders VALUES (9007199254740993, 0.1, 9.95, 'it''s', x'00ff', 1, '2026-01-01 12:00:00')",
        "INSERT INTO orders VALUES (2, 1.7976931348623157e308, 3, NULL, NULL, 0, NULL)",
        columns={"placed": "timestamp"},
    )
    folder.run()
    rows = folder.rows("shop.sales", "id", "amount", "price", "name", "body", "paid", "placed")
    second, first = sorted(rows, key=lambda row: row[0])
    assert (first[0], first[1], first[2], first[3]) == (9007199254740993, 0.1, Decimal("9.95"), "it's")
    assert (bytes(first[4]), first[5], str(first[6])) == (b"\x00\xff", True, "2026-01-01 12:00:00")
    assert second[:2] == (2, 1.7976931348623157e308)
    assert second[3:] == (None, None, False, None)


def test_a_text_in_a_column_of_numbers(make_folder: MakeFolder) -> None:
    """It is no zero: the row is bad, and is told."""
    folder = shop(
        make_folder,
        "CREATE TABLE orders (id INTEGER, amount INTEGER)",
        "INSERT INTO orders VALUES (1, 10), (2, 'ten')",
    )
    with pytest.raises(BadRows, match="1 of 2 rows"):
        folder.run()
    folder.change(bad_rows="quarantine")
    counts = folder.run().rows
    assert (counts.inserted, counts.quarantined) == (1, 1)


def test_a_sync_and_a_missing_file(make_folder: MakeFolder) -> None:
    folder = shop(make_folder, mode="sync")
    (folder.path / "shop.db").unlink()
    with pytest.raises(SourceRefused, match=r"shop\.db"):
        folder.run()
    assert not (folder.path / "shop.db").exists()
    numbers = ", ".join(f"({number}, 'a')" for number in range(30))
    execute(
        folder, "CREATE TABLE orders (id INTEGER PRIMARY KEY, a TEXT)", f"INSERT INTO orders VALUES {numbers}"
    )
    assert folder.run().rows.inserted == 30

    def move(event: Event) -> None:
        if isinstance(event, Reached) and event.step is Step.STAGED:
            execute(folder, "UPDATE orders SET a = 'c' WHERE id = 20", "DELETE FROM orders WHERE id = 2")

    execute(folder, "DELETE FROM orders WHERE id = 1", "UPDATE orders SET a = 'b' WHERE id = 20")
    counts = folder.run(listen=move).rows
    assert (counts.missing, counts.updated, counts.unchanged) == (1, 1, 28)
    assert folder.run().rows.missing == 1


def test_writers_do_not_wait(make_folder: MakeFolder) -> None:
    """In a database with a write-ahead log. A row that moves all the while is there once in each sync."""
    numbers = ", ".join(f"({number}, '{'x' * 1_000}')" for number in range(3_000))
    folder = shop(
        make_folder,
        "PRAGMA journal_mode = WAL",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, a TEXT)",
        f"INSERT INTO orders VALUES {numbers}",
        mode="sync",
    )

    def move(time: int) -> None:
        with closing(sqlite3.connect(folder.path / "shop.db", timeout=0)) as connection, connection:
            was, becomes = (0, 9_999) if time % 2 else (9_999, 0)
            connection.execute(f"UPDATE orders SET id = {becomes} WHERE id = {was}")

    with writing(move) as writer:
        for _ in range(2):
            assert folder.run().rows.read == 3_000
    assert not writer.failures
    assert writer.times > 10
    folder.run()
    with closing(sqlite3.connect(folder.path / "shop.db")) as connection:
        found = [row[0] for row in connection.execute("SELECT id FROM orders ORDER BY id")]
    assert sorted(r[0] for r in folder.rows("shop.sales", "id", "deleted") if not r[1]) == found


def test_a_database_that_somebody_else_has_locked(make_folder: MakeFolder) -> None:
    """A run waits for whoever writes, a while; then it fails, and the next one goes on."""
    folder = shop(
        make_folder,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY)",
        "INSERT INTO orders VALUES (1), (2)",
        source={"timeout": "1s"},
    )
    with closing(sqlite3.connect(folder.path / "shop.db")) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(SourceUnavailable) as caught:
            folder.run()
    assert "database is locked" in caught.value.reason
    assert folder.run().rows.inserted == 2


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("INTEGER", ["9", "10", "9007199254740993"]),
        ("REAL", ["0.1", "0.30000000000000004", "1e300"]),
        ("TEXT", ["'10'", "'9'", "'it''s'"]),
    ],
)
def test_cursors(make_folder: MakeFolder, column: str, values: list[str]) -> None:
    folder = shop(
        make_folder,
        f"CREATE TABLE orders (id INTEGER, at {column})",
        source={"cursor": "at", "cursor_order": "commit"},
    )
    for number, value in enumerate(values):
        execute(folder, f"INSERT INTO orders VALUES ({number}, {value})")
        assert folder.run().rows.read == 1
    assert folder.run().rows.read == 0


@pytest.mark.parametrize(("kind", "first", "other"), [("INTEGER", "7", "'x'"), ("", "'x'", "x'00'")])
def test_a_cursor_of_several_kinds(make_folder: MakeFolder, kind: str, first: str, other: str) -> None:
    """All numbers come before all texts: a text once seen, no new number would ever be read."""
    folder = shop(
        make_folder,
        f"CREATE TABLE orders (id {kind}, name TEXT)",
        f"INSERT INTO orders VALUES ({first}, 'a')",
        source={"cursor": "id", "cursor_order": "commit"},
    )
    assert folder.run().rows.read == 1
    execute(folder, f"INSERT INTO orders VALUES ({other}, 'b')")
    with pytest.raises(CursorUnsuitable) as caught:
        folder.run()
    assert "never lie beyond" in caught.value.reason
    execute(folder, "DELETE FROM orders WHERE name = 'b'", f"INSERT INTO orders VALUES ({first}, 'c')")
    assert folder.run().rows.read == 0


def test_decimals(make_folder: MakeFolder) -> None:
    """Exactly, with the digits that the column declares; what has more is a bad row."""
    folder = shop(
        make_folder,
        "CREATE TABLE orders (id INTEGER, price DECIMAL(10,2), rate NUMERIC(5), loose DECIMAL)",
        "INSERT INTO orders VALUES (1, 12345678.10, 3, 0.5), (2, -0.05, -99999, 7), (3, 1e3, NULL, 'x')",
        bad_rows="quarantine",
    )
    assert folder.run().rows.inserted == 3
    assert folder.rows("shop.sales", "id", "price", "rate", "loose") == [
        (1, Decimal("12345678.10"), Decimal(3), "0.5"),
        (2, Decimal("-0.05"), Decimal(-99999), "7"),
        (3, Decimal("1000.00"), None, "x"),
    ]
    execute(
        folder,
        "DELETE FROM orders",
        "INSERT INTO orders VALUES (4, 1.005, 1, 1), (5, 123456789, 1, 1), (6, 1, 1, 1)",
    )
    counts = folder.run().rows
    assert (counts.inserted, counts.quarantined) == (1, 2)


def test_chunks_and_lag(make_folder: MakeFolder) -> None:
    numbers = ", ".join(f"({number}, '2026-01-01T12:00:{number:02}.5Z')" for number in range(20))
    folder = shop(
        make_folder,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, at TEXT)",
        f"INSERT INTO orders VALUES {numbers}",
        mode="upsert",
        source={"chunks": {"size": 4}, "connections": 2},
    )
    assert (folder.run().batches, folder.run().rows.unchanged) == (3, 20)
    folder.change(source=folder.document["pipelines"]["sales"]["source"] | {"cursor": "at", "lag": "2s"})
    folder.change(table="shop.others")
    folder.run()
    assert folder.run().rows.unchanged == 3


@pytest.mark.parametrize(
    ("column", "lag", "values"),
    [
        ("INTEGER", 3, ["1", "6", "7", "9", "10"]),
        ("REAL", 3, ["1.5", "6", "7.25", "9", "10.25"]),
        ("TEXT", "3s", [f"'2026-01-01T12:00:{second:02}.5Z'" for second in (1, 6, 7, 9, 10)]),
    ],
)
def test_append_with_lag(make_folder: MakeFolder, column: str, lag: int | str, values: list[str]) -> None:
    """What is nearer than that to the highest value is for a later run."""
    folder = shop(
        make_folder,
        f"CREATE TABLE orders (id INTEGER PRIMARY KEY, at {column})",
        f"INSERT INTO orders (at) VALUES {', '.join(f'({value})' for value in values)}",
        source={"cursor": "at", "lag": lag},
    )
    assert folder.run().rows.read == 3
    assert folder.run().rows.read == 0
    execute(folder, f"INSERT INTO orders (at) VALUES ({values[3]})")
    assert folder.run().rows.read == 0
    assert sorted(row[0] for row in folder.rows("shop.sales", "id")) == [1, 2, 3]


@pytest.mark.parametrize("far", ["2099-01-01 00:00:00", "2099-01-01T00:00:00.25Z", "2099-01-01"])
@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_time_far_ahead_does_not_end_the_lag(make_folder: MakeFolder, mode: str, far: str) -> None:
    """One row of the year 2099 would be above all that comes later, and rows that come late would be lost."""
    folder = shop(
        make_folder,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, at TEXT)",
        "INSERT INTO orders VALUES (1, '2026-01-01 12:00:00'), (2, '2026-01-01 12:00:09')",
        f"INSERT INTO orders VALUES (3, '{far}')",
        source={"cursor": "at", "lag": "5s"},
        mode=mode,
    )

    def ids() -> list[int]:
        return sorted(row[0] for row in folder.rows("shop.sales", "id"))

    is_keyed = mode == "upsert"
    first = folder.run()
    assert any("until the database's clock gets there" in note for note in first.notes), first.notes
    assert ids() == ([1, 2, 3] if is_keyed else [1])
    execute(folder, "INSERT INTO orders VALUES (4, '2026-01-01 12:00:07'), (5, '2026-01-01 12:00:20')")
    folder.run()
    assert ids() == ([1, 2, 3, 4, 5] if is_keyed else [1, 2, 4])
    execute(folder, "INSERT INTO orders VALUES (6, '2026-01-01 12:00:18')")
    folder.run()
    assert ids() == ([1, 2, 3, 4, 5, 6] if is_keyed else [1, 2, 4])
    execute(folder, "INSERT INTO orders VALUES (7, '2026-01-01 12:00:30')")
    folder.run()
    assert ids() == ([1, 2, 3, 4, 5, 6, 7] if is_keyed else [1, 2, 4, 5, 6])


def test_a_query(make_folder: MakeFolder) -> None:
    """What has no type comes as text, unless the project file says what it is."""
    folder = shop(
        make_folder,
        "CREATE TABLE orders (id INTEGER)",
        "INSERT INTO orders VALUES (1), (2), (3)",
        mode="replace",
        source={"table": None, "query": "SELECT id % 2 AS odd, count(*) AS n FROM orders GROUP BY 1"},
        columns={"n": "bigint"},
    )
    folder.run()
    assert folder.rows("shop.sales", "odd", "n") == [("0", 1), ("1", 2)]


def test_windows(make_folder: MakeFolder) -> None:
    """Times are texts or numbers, with zones or without; a day without a time is read when it is over."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    yesterday, today = hour - timedelta(days=1), datetime.now(UTC)
    seconds = int(hour.timestamp())
    at = {
        1: f"'{hour:%F %T}'",
        2: f"'{hour:%FT%T}.999Z'",
        3: f"'{hour + timedelta(hours=5):%FT%T}+05:00'",
        4: str(seconds + 3600),
        5: f"{seconds + 3600}.5",
        6: f"'{yesterday:%F}'",
        7: f"'{today:%F}'",
        8: f"'{hour - timedelta(seconds=1):%F %T}'",
    }
    folder = shop(
        make_folder,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, at)",
        f"INSERT INTO orders VALUES {', '.join(f'({id}, {value})' for id, value in at.items())}",
        mode="append",
        source={"cursor": "at", "window": {"every": "1h", "start": hour.isoformat(), "split_at": 2}},
    )
    assert folder.run().rows.read == 5
    assert folder.rows("shop.sales", "id")[0] == (1,)
    folder.change(table="shop.others")
    source = folder.document["pipelines"]["sales"]["source"]
    folder.change(source=source | {"window": {"every": "12h"}})
    folder.run()
    assert 6 in [row[0] for row in folder.rows("shop.others", "id")]
    assert 7 not in [row[0] for row in folder.rows("shop.others", "id")]


@pytest.mark.parametrize(
    "value", ["'yesterday'", "'2026'", "'2026-13-01'", "1", "2460000.5", "1767268800000"]
)
def test_what_is_no_time(make_folder: MakeFolder, value: str) -> None:
    """Such a row would lie in no window, and nobody would miss it."""
    folder = shop(
        make_folder,
        "CREATE TABLE orders (id INTEGER, at)",
        f"INSERT INTO orders VALUES (1, '2026-01-01'), (2, {value})",
        source={"cursor": "at", "window": {"every": "1d", "start": "2026-01-01"}},
    )
    with pytest.raises(CursorUnsuitable) as caught:
        folder.run()
    assert caught.value.reason.endswith("Rows that have one: 1.")
