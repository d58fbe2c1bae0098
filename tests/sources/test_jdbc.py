"""Read a PostgreSQL database: all of a table, or what is new in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from esker.errors import CursorUnsuitable, NullCursor, SourceRefused, SourceUnavailable
from esker.events import Event, Reached, Step
from esker.pipeline.plan import open_reader
from esker.sources.jdbc.database import Relation
from tests.folder import Folder
from tests.servers.postgres import Database, Postgres, running_replica
from tests.sources.restless import most_at_once, writing

pytestmark = [pytest.mark.spark, pytest.mark.server]

MakeFolder = Callable[..., Folder]
COLUMNS = "id bigint PRIMARY KEY, name text, changed timestamptz"


def whole_hour() -> datetime:
    """The hour that is over, by the clock of the database: it is on this machine."""
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


class Shop:
    """A database with a table of orders, and a project that loads it."""

    def __init__(self, make_folder: MakeFolder, database: Database, columns: str = COLUMNS) -> None:
        self._make, self.database = make_folder, database
        self.sql(f"CREATE TABLE orders ({columns})")

    def sql(self, statement: str) -> None:
        with self.database.connect() as connection:
            connection.execute(statement.encode())

    def fill(self, first: int, last: int) -> None:
        """Insert orders, one a minute from 12:00 on."""
        self.sql(
            "INSERT INTO orders SELECT i, 'order ' || i, timestamptz '2026-01-01 12:00+00' "
            f"+ i * interval '1 minute' FROM generate_series({first}, {last}) i"
        )

    def project(self, mode: str = "append", folder: str = "project", **source: Any) -> Folder:
        keys: dict[str, Any] = {} if mode in ("append", "replace") else {"key": ["id"]}
        if "window" in source:
            keys["order_by"] = "changed"
        return self._make(
            folder,
            pipelines={
                "sales": {
                    "source": {
                        "type": "jdbc",
                        "url": f"jdbc:postgresql://{self.database.address}",
                        "user": self.database.user,
                        "password": "${SHOP_PASSWORD}",
                        "table": "orders",
                        **source,
                    },
                    "table": "shop.sales",
                    "mode": mode,
                    **keys,
                }
            },
        )


@pytest.fixture
def shop(make_folder: MakeFolder, database: Database, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("SHOP_PASSWORD", database.password)
    return Shop(make_folder, database)


def ids(folder: Folder) -> list[int]:
    return sorted(row[0] for row in folder.rows("shop.sales", "id"))


def live(folder: Folder) -> list[int]:
    return sorted(row[0] for row in folder.rows("shop.sales", "id", "deleted") if not row[1])


def at(step: Step, act: Callable[[], None], nth: int = 1) -> Callable[[Event], None]:
    """Return a listener that does something when a step is reached for the n-th time."""
    seen = 0

    def listen(event: Event) -> None:
        nonlocal seen
        if isinstance(event, Reached) and event.step is step:
            seen += 1
            if seen == nth:
                act()

    return listen


# --- all of a table ------------------------------------------------------------------------------


def test_a_whole_table_in_chunks(shop: Shop) -> None:
    """Each run sees all of it: what is gone is deleted, what has changed is changed."""
    shop.fill(1, 250)
    shop.sql("INSERT INTO orders VALUES (9000000000000, 'far away', NULL)")
    folder = shop.project("sync", chunks={"size": 100})
    first = folder.run()
    assert (first.rows.read, first.rows.inserted, first.batches) == (251, 251, 1)
    shop.sql("DELETE FROM orders WHERE id <= 5")
    shop.sql("UPDATE orders SET name = 'other' WHERE id = 7")
    second = folder.run()
    assert (second.rows.missing, second.rows.updated, second.rows.unchanged) == (5, 1, 245)
    assert live(folder) == [*range(6, 251), 9000000000000]
    [plan] = folder.open().plan()
    assert plan.slices[0].summary == "all rows of orders, 3 chunks"


def test_chunks_of_numbers_with_gaps(shop: Shop) -> None:
    """Where numbers are close, they are counted off; where they are not, rows are."""
    shop.fill(1, 15_000)
    shop.sql("INSERT INTO orders SELECT 1000000000000 + i * 1000, 'far' FROM generate_series(1, 12000) i")
    folder = shop.project("append", chunks={"size": 10_000}, connections=1)
    opened = folder.open()
    ends = [piece.end for piece in opened.plan(["sales"])[0].slices]
    assert [end.get("above") for end in ends if end] == ["10000", "20000", "1000010000000", None]
    result = opened.run("sales")
    assert (result.rows.inserted, result.batches) == (27_000, 4)
    assert len(set(ids(folder))) == 27_000


def test_all_chunks_see_one_state(shop: Shop) -> None:
    """Rows that move between chunks while these are read are neither lost nor there twice."""
    shop.fill(1, 40)
    folder = shop.project("sync", chunks={"size": 10}, connections=1)

    def move() -> None:
        shop.sql("DELETE FROM orders WHERE id = 35")
        shop.sql("UPDATE orders SET id = id + 1000 WHERE id = 5")
        shop.fill(50, 60)

    first = folder.run(listen=at(Step.PLANNED, move))
    assert (first.rows.read, ids(folder)) == (40, list(range(1, 41)))
    assert folder.run().rows.read == 50
    assert live(folder) == [*range(1, 5), *range(6, 35), *range(36, 41), *range(50, 61), 1005]


def test_chunks_are_read_at_once(shop: Shop) -> None:
    """Each by a connection of its own. Some rows take a while, so that others can be seen beside them."""
    shop.fill(1, 50)
    query = "SELECT * FROM orders WHERE id % 25 <> 10 OR pg_sleep(0.5) IS NOT NULL"
    asleep = b"SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    for connections, most in ((2, 2), (1, 1)):
        chunks = {"chunks": {"column": "id", "size": 25}, "connections": connections}
        folder = shop.project("append", f"{connections}", table=None, query=query, **chunks)
        with shop.database.connect() as connection:

            def sleeping(connection: Any = connection) -> int:
                return int(connection.execute(asleep).fetchone()[0])

            with most_at_once(sleeping) as seen:
                assert folder.run().batches == 2 // connections
        assert seen() == most
        assert ids(folder) == list(range(1, 51))


def test_rows_that_move_all_the_while(shop: Shop) -> None:
    """Somebody moves a row from one end of the table to the other, again and again: it is there once."""
    shop.fill(1, 2_000)
    folder = shop.project("sync", chunks={"size": 100}, connections=4)
    with shop.database.connect() as connection:

        def move(time: int) -> None:
            was, becomes = (1, 5_000) if time % 2 else (5_000, 1)
            connection.execute(f"UPDATE orders SET id = {becomes} WHERE id = {was}".encode())

        with writing(move) as writer:
            for _ in range(2):
                assert folder.run().rows.read == 2_000
    assert writer.times > 10
    assert not writer.failures
    folder.run()
    with shop.database.connect() as connection:
        found = connection.execute(b"SELECT id FROM orders ORDER BY id").fetchall()
    assert live(folder) == [row[0] for row in found]


def test_reading_locks_nothing(shop: Shop) -> None:
    """While a run is under way, the table can be written. Only what would empty it for a snapshot waits."""
    shop.fill(1, 20)
    folder = shop.project("replace")

    def write() -> None:
        shop.sql("SET lock_timeout = '2s'; UPDATE orders SET name = 'x'; INSERT INTO orders VALUES (99)")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            shop.sql("SET lock_timeout = '100ms'; TRUNCATE orders")

    folder.run(listen=at(Step.READ, write))
    assert ids(folder) == list(range(1, 21))
    with shop.database.connect() as connection:
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        assert connection.execute(waiting).fetchone() == (0,)


def test_replace_and_an_empty_table(shop: Shop) -> None:
    folder = shop.project("replace")
    assert folder.run().rows.read == 0
    shop.fill(1, 3)
    folder.run()
    shop.sql("DELETE FROM orders WHERE id = 2")
    folder.run()
    assert ids(folder) == [1, 3]
    assert (
        shop.project("append", "empty", query="SELECT * FROM orders WHERE false", table=None).run().batches
        == 0
    )


def test_append_takes_all_each_time(shop: Shop) -> None:
    shop.fill(1, 3)
    folder = shop.project("append")
    folder.run()
    folder.run()
    assert ids(folder) == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_chunks_that_are_loaded_are_not_read_again(shop: Shop, mode: str) -> None:
    """A run that stops in the middle of a table goes on behind the last chunk that is in."""
    shop.fill(1, 50)
    folder = shop.project(mode, chunks={"size": 10}, connections=1)

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(BaseException, match="interrupted"):
        folder.run(listen=at(Step.READ, stop, nth=3))
    assert ids(folder) == list(range(1, 21))
    # Behind the end of the round: for the next one.
    shop.fill(60, 61)
    result = folder.run()
    assert (result.rows.read, result.batches, result.position["to"]) == (30, 3, {"rounds": 1})
    assert ids(folder) == list(range(1, 51))
    assert folder.run().rows.read == 52


def test_a_query_and_its_chunks(shop: Shop) -> None:
    shop.fill(1, 30)
    query = "SELECT id, upper(name) AS name, id % 7 AS day FROM orders WHERE id > 10;"
    folder = shop.project("upsert", table=None, query=query, chunks={"column": "id", "size": 8})
    assert folder.run().rows.inserted == 20
    assert folder.rows("shop.sales", "name")[0] == ("ORDER 11",)


# --- by a cursor ---------------------------------------------------------------------------------


def test_only_what_is_new(shop: Shop) -> None:
    shop.fill(1, 10)
    folder = shop.project("append", cursor="id")
    assert folder.run().position["to"] == {"cursor": "10"}
    assert folder.run().rows.read == 0
    shop.fill(11, 12)
    assert folder.run().rows.read == 2
    shop.sql("DELETE FROM orders WHERE id > 5")
    assert folder.run().position["to"] == {"cursor": "12"}
    assert ids(folder) == list(range(1, 13))


def test_rows_that_arrive_while_others_are_read(shop: Shop) -> None:
    """They belong to the next run, which finds them."""
    shop.fill(1, 10)
    folder = shop.project("append", cursor="id")
    assert folder.run(listen=at(Step.PLANNED, lambda: shop.fill(11, 15))).rows.read == 10
    assert folder.run().rows.read == 5
    assert ids(folder) == list(range(1, 16))


def test_rows_with_the_last_value(shop: Shop) -> None:
    """By key they are read again, and those that came later are found. Others wait for a higher value, unless
    the project file says that rows become visible in the order of the cursor."""
    shop.fill(1, 3)
    closed, waiting, trusting = (
        shop.project("upsert", cursor="changed"),
        shop.project("append", "waiting", cursor="changed"),
        shop.project("append", "trusting", cursor="changed", cursor_order="commit"),
    )
    assert [folder.run().rows.read for folder in (closed, waiting, trusting)] == [3, 2, 3]
    shop.sql("INSERT INTO orders SELECT 4, 'same time', max(changed) FROM orders")
    result = closed.run()
    assert (result.rows.read, result.rows.inserted, result.rows.unchanged) == (2, 1, 1)
    assert waiting.run().notes == (
        "rows of orders by changed beyond 2026-01-01 12:02:00+00 wait for a higher value: others may have "
        "the same one",
    )
    shop.fill(5, 5)
    assert [folder.run().rows.read for folder in (waiting, trusting)] == [2, 1]
    assert (ids(waiting), ids(trusting)) == ([1, 2, 3, 4], [1, 2, 3, 5])


@pytest.mark.parametrize(("cursor", "lag"), [("changed", "3m"), ("id", 3)])
def test_rows_that_become_visible_late(shop: Shop, cursor: str, lag: Any) -> None:
    shop.fill(1, 7)
    shop.fill(9, 10)
    folder = shop.project("upsert", cursor=cursor, lag=lag)
    folder.run()
    shop.fill(8, 8)
    result = folder.run()
    assert (result.rows.inserted, result.rows.unchanged) == (1, 3)
    assert folder.run().rows.read == 4
    wrong = shop.project("upsert", "wrong", cursor=cursor, lag=5 if lag == "3m" else "5m")
    wrong.run()
    with pytest.raises(CursorUnsuitable, match="cannot be read by column"):
        wrong.run()


def test_a_large_backlog_in_steps(shop: Shop) -> None:
    """Each step has its own position, also where many rows have one value."""
    shop.fill(1, 30)
    shop.sql("UPDATE orders SET changed = timestamptz '2026-01-01 12:10+00' WHERE id BETWEEN 10 AND 20")
    folder = shop.project("append", cursor="changed", chunks={"size": 5}, connections=1)

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(BaseException, match="interrupted"):
        folder.run(listen=at(Step.READ, stop, nth=3))
    assert ids(folder) == list(range(1, 21))
    folder.run()
    # Another row may have the last one's value, too: it waits for a higher one.
    assert ids(folder) == list(range(1, 30))


def test_rows_without_a_cursor(shop: Shop) -> None:
    shop.fill(1, 3)
    shop.sql("INSERT INTO orders VALUES (10, 'no time', NULL), (11, 'no time', NULL)")
    with pytest.raises(NullCursor, match='column "changed" has no value in 2 rows'):
        shop.project("upsert", cursor="changed").run()
    skipping = shop.project("upsert", "skip", cursor="changed", nulls="skip")
    [plan] = skipping.open().plan()
    assert "2 rows without it left out" in plan.slices[0].summary
    skipping.run()
    assert ids(skipping) == [1, 2, 3]
    including = shop.project("upsert", "include", cursor="changed", nulls="include")
    including.run()
    assert ids(including) == [1, 2, 3, 10, 11]
    shop.sql("UPDATE orders SET name = 'changed' WHERE id = 10")
    assert including.run().rows.updated == 1


@pytest.mark.parametrize("kind", ["timestamp", "date", "numeric(20,4)", "text", "uuid"])
def test_cursors_of_many_types(
    make_folder: MakeFolder, database: Database, kind: str, monkeypatch: Any
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", database.password)
    shop = Shop(make_folder, database, f"id bigint, at {kind} UNIQUE")
    values = {
        "timestamp": ["2025-03-30 02:30:00.000001", "2025-03-30 02:30:00.000002", "2025-10-26 02:30:00"],
        "date": ["2026-01-01", "2026-01-02", "2026-01-03"],
        "numeric(20,4)": ["9007199254740993.0001", "9007199254740993.0002", "9007199254740993.0003"],
        "text": ["a", "it's", "z"],
        "uuid": [f"00000000-0000-0000-0000-00000000000{n}" for n in range(3)],
    }[kind]
    folder = shop.project("append", cursor="at")
    for number, value in enumerate(values):
        quoted = value.replace("'", "''")
        shop.sql(f"INSERT INTO orders VALUES ({number}, '{quoted}')")
        assert folder.run().rows.read == 1
    assert folder.run().rows.read == 0
    assert sorted(str(row[0]) for row in folder.rows("shop.sales", "at")) == values


def test_a_cursor_without_end(shop: Shop) -> None:
    """Nothing would ever lie beyond infinity."""
    shop.sql("INSERT INTO orders VALUES (1, 'for ever', 'infinity')")
    with pytest.raises(CursorUnsuitable) as caught:
        shop.project("upsert", cursor="changed").run()
    assert "nothing would ever lie beyond it" in caught.value.reason
    shop.sql("UPDATE orders SET changed = '-infinity'")
    folder = shop.project("upsert", "least", cursor="changed", lag="5m")
    for read in (1, 1):
        assert folder.run().rows.read == read
    shop.fill(2, 3)
    assert folder.run().rows.inserted == 2


def test_times_without_end(shop: Shop) -> None:
    """Tables have none: they become the last moment of the year 9999, and a day early in the year 1."""
    shop.sql("ALTER TABLE orders ADD COLUMN local timestamp, ADD COLUMN day date")
    for number, value in enumerate(("infinity", "-infinity")):
        shop.sql(f"INSERT INTO orders VALUES ({number}, '{value}', '{value}', '{value}', '{value}')")
    folder = shop.project("append")
    folder.run()
    first, last = (
        [str(value)[:10] for value in row] for row in folder.rows("shop.sales", "changed", "local", "day")
    )
    assert [text[:-1] for text in first] == ["0001-01-0"] * 3
    assert last == ["9999-12-31"] * 3


def test_versions(shop: Shop) -> None:
    """Without order_by, versions begin when the database was looked at, by its own clock."""
    shop.fill(1, 3)
    folder = shop.project("scd2")
    folder.run()
    shop.sql("UPDATE orders SET name = 'other' WHERE id = 2")
    folder.run()
    assert [row[0] for row in folder.rows("shop.sales", "id", "is_current") if not row[1]] == [2]


# --- by a cursor, while transactions run ---------------------------------------------------------


@contextmanager
def transaction(shop: Shop) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A transaction that is still running; the block commits it."""
    with shop.database.connect() as connection:
        connection.execute("BEGIN")
        yield connection


def test_rows_that_are_committed_late_are_appended(shop: Shop) -> None:
    """Values are given before rows are committed: what a running transaction may still add is waited for."""
    shop.sql("CREATE SEQUENCE numbers")
    insert = b"INSERT INTO orders SELECT nextval('numbers'), 'order' FROM generate_series(1, %d)"
    folder = shop.project("append", cursor="id")
    shop.sql((insert % 2).decode())
    folder.run()
    with transaction(shop) as other, transaction(shop) as late:
        # Another table first: who has the lower transaction id has the higher value, and commits first.
        other.execute("CREATE TABLE elsewhere (id int)")
        late.execute(insert % 3)
        other.execute(insert % 1)
        other.execute("COMMIT")
        shop.sql((insert % 1).decode())
        first = folder.run()
        assert ids(folder) == [1, 2]
        [note] = [each for each in first.notes if "still running" in each]
        assert str(late.info.backend_pid) in note
        late.execute("COMMIT")
    assert folder.run().rows.read == 5
    assert ids(folder) == list(range(1, 8))
    assert folder.run().rows.read == 0


def test_a_value_that_was_given_and_not_written_yet(shop: Shop) -> None:
    """Nothing but the transaction itself shows it: it has no id, and no lock on the table."""
    shop.sql("ALTER TABLE orders ALTER changed SET DEFAULT now()")
    folder = shop.project("append", cursor="changed")
    with transaction(shop) as late:
        late.execute("SELECT 1")
        shop.sql("INSERT INTO orders (id) VALUES (2)")
        shop.sql("INSERT INTO orders (id) VALUES (3)")
        assert folder.run().rows.read == 0
        late.execute("INSERT INTO orders (id) VALUES (1)")
        late.execute("COMMIT")
    # The last value waits for a higher one: another row may have it, too.
    assert folder.run().rows.read == 2
    assert ids(folder) == [1, 2]
    shop.sql("INSERT INTO orders SELECT 4, 'same time', max(changed) FROM orders")
    shop.sql("INSERT INTO orders (id) VALUES (5)")
    assert folder.run().rows.read == 2
    assert ids(folder) == [1, 2, 3, 4]


def test_what_was_seen_before_a_long_transaction_is_not_kept_waiting(shop: Shop) -> None:
    """Each run remembers what ran: there may be always one that runs, and yet all is read in time."""
    folder = shop.project("append", cursor="id")
    shop.fill(1, 2)
    with transaction(shop) as first:
        first.execute("SELECT 1")
        shop.fill(3, 4)
        assert folder.run().rows.read == 0
        with transaction(shop) as second:
            second.execute("SELECT 1")
            shop.fill(5, 6)
            first.execute("COMMIT")
            assert folder.run().rows.read == 4
            assert ids(folder) == [1, 2, 3, 4]
            second.execute("COMMIT")
    assert folder.run().rows.read == 2


def test_a_time_ahead_of_the_clock(shop: Shop) -> None:
    """It says nothing of transactions: those that begin later have lower times. It waits until the clock gets
    there; by key it is read, and the rows below it by later runs all the same."""
    shop.sql("ALTER TABLE orders ALTER changed SET DEFAULT now()")
    shop.sql("INSERT INTO orders VALUES (1, 'from a wrong clock', '2099-01-01')")
    shop.sql("INSERT INTO orders (id) VALUES (2)")
    folder, keyed = (
        shop.project("append", cursor="changed"),
        shop.project("upsert", "keyed", cursor="changed"),
    )
    assert [folder.run().rows.read, keyed.run().rows.read] == [1, 2]
    with transaction(shop) as late:
        late.execute("SELECT 1")
        shop.sql("INSERT INTO orders (id) VALUES (3)")
        assert "still running" in folder.run().notes[0]
        keyed.run()
        late.execute("INSERT INTO orders (id) VALUES (4)")
        late.execute("COMMIT")
    result = folder.run()
    assert "beyond" in result.notes[0]
    assert "ahead of it" in result.notes[0]
    keyed.run()
    assert [ids(folder), ids(keyed)] == [[2, 3, 4], [1, 2, 3, 4]]


def test_a_prepared_transaction(shop: Shop) -> None:
    """It is no session's any more, and still may be committed."""
    folder = shop.project("append", cursor="id")
    with transaction(shop) as late:
        late.execute("INSERT INTO orders VALUES (1)")
        shop.fill(2, 3)
        assert folder.run().rows.read == 0
        late.execute(f"PREPARE TRANSACTION '{shop.database.name}'")
    assert folder.run().rows.read == 0
    shop.sql(f"COMMIT PREPARED '{shop.database.name}'")
    assert folder.run().rows.read == 3
    assert ids(folder) == [1, 2, 3]


def test_a_replica(shop: Shop, postgres: Postgres) -> None:
    """It does not see what runs on its primary: without `lag` nothing tells which rows may still come."""
    shop.fill(1, 10)
    with running_replica(postgres) as replica:
        there = replica.database(shop.database.name)
        url = f"jdbc:postgresql://{there.address}"
        with pytest.raises(CursorUnsuitable) as caught:
            shop.project("upsert", "blind", cursor="id", url=url).run()
        assert "is a replica" in caught.value.reason
        assert "Write lag:" in caught.value.remedy
        folder = shop.project("append", cursor="id", lag=2, url=url)
        assert folder.run().rows.read == 8


def test_rows_of_a_logical_replication(shop: Shop) -> None:
    """Its transactions begin here when those that gave the values have ended elsewhere."""
    database = shop.database
    at = f"host=127.0.0.1 port={database.port} dbname={database.name} user={database.user}"
    shop.sql("CREATE PUBLICATION shop FOR TABLE orders")
    shop.sql(
        f"CREATE SUBSCRIPTION shop CONNECTION '{at} password={database.password}' PUBLICATION shop "
        "WITH (enabled = false, create_slot = false, slot_name = NONE, copy_data = false)"
    )
    try:
        with pytest.raises(CursorUnsuitable) as caught:
            shop.project("append", cursor="id").run()
    finally:
        shop.sql("DROP SUBSCRIPTION shop")
    assert "logical replication" in caught.value.reason


def test_a_foreign_table(shop: Shop) -> None:
    """The transactions that add its rows run on another server."""
    database = shop.database
    shop.sql("CREATE EXTENSION postgres_fdw")
    at = f"host '127.0.0.1', port '{database.port}', dbname '{database.name}'"
    shop.sql(f"CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({at})")
    who = f"user '{database.user}', password '{database.password}'"
    shop.sql(f"CREATE USER MAPPING FOR CURRENT_USER SERVER other OPTIONS ({who})")
    shop.sql("CREATE FOREIGN TABLE far (id bigint) SERVER other OPTIONS (table_name 'orders')")
    with pytest.raises(CursorUnsuitable) as caught:
        shop.project("append", cursor="id", table="far").run()
    assert "foreign table" in caught.value.reason


def test_keys_do_not_wait_for_transactions(shop: Shop) -> None:
    """With a key, what is there is read at once, and once more by the next run."""
    folder = shop.project("upsert", cursor="id")
    shop.fill(1, 2)
    with transaction(shop) as late:
        late.execute("INSERT INTO orders VALUES (3)")
        shop.fill(4, 5)
        assert folder.run().rows.inserted == 4
        late.execute("COMMIT")
    result = folder.run()
    assert (result.rows.inserted, result.rows.unchanged) == (1, 4)
    assert ids(folder) == [1, 2, 3, 4, 5]
    assert folder.run().rows.read == 1


def test_append_with_lag(shop: Shop) -> None:
    """Values that were given outside of a transaction: no row that is that new is read."""
    folder = shop.project("append", cursor="id", lag=3)
    shop.fill(1, 6)
    shop.fill(8, 10)
    assert folder.run().rows.read == 6
    shop.fill(7, 7)
    assert folder.run().rows.read == 1
    result = folder.run()
    assert (result.rows.read, result.notes) == (0, ("rows of orders by id beyond 7 wait for lag",))
    shop.fill(11, 11)
    assert folder.run().rows.read == 1
    assert ids(folder) == list(range(1, 9))


# --- by windows of time --------------------------------------------------------------------------


def test_windows(shop: Shop) -> None:
    """Windows are covered one by one, large ones are halved, and a range can be read again."""
    hour = whole_hour() - timedelta(hours=2)
    minutes = ", ".join(f"({n}, 'order', '{hour + n * timedelta(minutes=1)}')" for n in range(70))
    shop.sql(f"INSERT INTO orders VALUES {minutes}")
    window = {"every": "1h", "start": hour.isoformat(), "split_at": 40}
    folder = shop.project("upsert", cursor="changed", window=window)
    assert folder.run().rows.inserted == 70
    assert ids(folder) == list(range(70))
    assert next(line.status for line in folder.open().windows("sales")) == "covered"
    shop.sql(f"INSERT INTO orders VALUES (500, 'late', '{hour + timedelta(minutes=30)}')")
    assert folder.run().rows.read == 0
    since, until = hour + timedelta(minutes=20), hour + timedelta(minutes=40)
    again = folder.open().backfill("sales", since=since, until=until)
    assert (again.status, again.rows.inserted) == ("succeeded", 1), again.error
    wrong = shop.project("upsert", "wrong", cursor="id", window=window)
    with pytest.raises(CursorUnsuitable, match='by column "id"'):
        wrong.run()


@pytest.mark.parametrize("value", ["infinity", "-infinity"])
@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "date"])
def test_windows_and_what_has_no_time(shop: Shop, value: str, kind: str) -> None:
    """No window would ever hold such a row, and nobody would miss it."""
    shop.sql(f"ALTER TABLE orders ALTER changed TYPE {kind}")
    shop.sql(f"INSERT INTO orders VALUES (1, 'one', '2026-01-01'), (2, 'two', '{value}')")
    day = (whole_hour().replace(hour=0) - timedelta(days=1)).isoformat()
    for window in ({"every": "1d"}, {"every": "1d", "start": day}):
        folder = shop.project("upsert", f"{len(window)}", cursor="changed", window=window)
        with pytest.raises(CursorUnsuitable) as caught:
            folder.run()
        assert caught.value.reason.endswith("Rows that have one: 1.")
        assert "infinity" in caught.value.remedy
    asked = "SELECT * FROM orders WHERE isfinite(changed)"
    folder = shop.project("upsert", "finite", table=None, query=asked, cursor="changed", window=window)
    assert folder.run().rows.read == 0


def test_where_windows_begin_is_asked_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many steps a run takes: without an index that looks at all rows."""
    hour = whole_hour() - timedelta(hours=4)
    hours = ", ".join(f"({n}, 'order', '{hour + n * timedelta(hours=1)}')" for n in range(4))
    shop.sql(f"INSERT INTO orders VALUES {hours}")
    asked: list[str] = []
    number = Relation.number

    def counted(relation: Relation, sql: str) -> float | None:
        asked.append(sql)
        return number(relation, sql)

    monkeypatch.setattr(Relation, "number", counted)
    folder = shop.project("upsert", cursor="changed", window={"every": "1h", "max_windows": 1})
    assert folder.run().batches == 4
    assert len(asked) == 1


def test_many_rows_of_one_second(shop: Shop) -> None:
    """A window that cannot be halved any more is read as it is, and its rows keep their times."""
    second = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=10)
    second -= timedelta(seconds=int(second.timestamp()) % 4)
    for number, fraction in ((30, "123456"), (1, "999999")):
        shop.sql(
            f"INSERT INTO orders SELECT i + {number} * 100, 'at once', '{second:%F %T}.{fraction}+00' "
            f"FROM generate_series(1, {number}) i"
        )
    window = {"every": "4s", "start": second.isoformat(), "split_at": 20}
    folder = shop.project("upsert", cursor="changed", window=window)
    assert folder.run().rows.inserted == 31
    micros = {row[0].microsecond for row in folder.rows("shop.sales", "changed")}
    assert micros == {123456, 999999}


def test_windows_of_days(shop: Shop) -> None:
    """A row that knows its day only is read when the day is over, not with its first hours."""
    today = whole_hour().replace(hour=0)
    shop.sql("ALTER TABLE orders ALTER changed TYPE date")
    shop.sql(
        f"INSERT INTO orders VALUES (1, 'before', '{today - timedelta(days=1):%F}'), (2, 'now', '{today:%F}')"
    )
    start = (today - timedelta(hours=12)).isoformat()
    folder = shop.project("upsert", cursor="changed", window={"every": "6h", "start": start, "split_at": 1})
    folder.run()
    assert ids(folder) == [1]


# --- faults --------------------------------------------------------------------------------------


def test_a_wrong_password(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "quite-wrong-indeed")
    with pytest.raises(SourceRefused) as caught:
        shop.project("replace").run()
    assert "password authentication failed" in caught.value.reason
    assert "quite-wrong-indeed" not in str(caught.value.as_json())


def test_nothing_tells_the_password(shop: Shop, capfd: pytest.CaptureFixture[str]) -> None:
    """Not the plan, not Spark's plan, not its log."""
    shop.fill(1, 3)
    folder = shop.project("upsert")
    opened = folder.open()
    told = str([plan.as_json() for plan in opened.plan()]) + str(folder.run().as_json())
    told += "".join(path.read_text() for path in folder.path.glob(".esker/logs/*"))
    told += opened.engine.log.read_text()
    with closing(open_reader(opened.engine, "sales")) as reader:
        piece = reader.newest()
        assert piece is not None
        reader.read(piece, ()).explain(extended=True)
    told += capfd.readouterr().out
    assert "JDBCRelation" in told
    assert shop.database.password not in told


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"table": "nothing"}, 'relation "nothing" does not exist'),
        ({"cursor": "nothing"}, 'It has no column "nothing"; it has "id", "name", "changed".'),
        ({"chunks": {"column": "nothing"}}, 'It has no column "nothing"'),
        ({"table": None, "query": "SELEC 1"}, "syntax error"),
    ],
)
def test_what_is_not_there(shop: Shop, source: dict[str, Any], words: str) -> None:
    with pytest.raises(SourceRefused) as caught:
        shop.project("append", **source).run()
    assert words in caught.value.reason


def test_a_database_that_is_down(shop: Shop) -> None:
    """A clear error, after some tries."""
    folder = shop.project("append", cursor="id", url="jdbc:postgresql://127.0.0.1:1/nowhere")
    with pytest.raises(SourceUnavailable, match="cannot be read") as caught:
        folder.run()
    assert "asked 4 times" in caught.value.reason


def test_a_database_that_lets_nobody_in(shop: Shop) -> None:
    """For a while: the run that meets it loses nothing, and the next one goes on."""
    shop.fill(1, 3)
    role = f"reader_{shop.database.name}"
    shop.sql(
        f"CREATE ROLE {role} LOGIN PASSWORD '{shop.database.password}'; GRANT SELECT ON orders TO {role}"
    )
    folder = shop.project("append", cursor="id", user=role)
    folder.run()
    shop.fill(4, 5)
    shop.sql(f"ALTER ROLE {role} CONNECTION LIMIT 0")
    with pytest.raises(SourceUnavailable) as caught:
        folder.run()
    assert "too many connections" in caught.value.reason
    assert ids(folder) == [1, 2, 3]
    shop.sql(f"ALTER ROLE {role} CONNECTION LIMIT -1")
    assert folder.run().rows.read == 2
    assert ids(folder) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_a_connection_that_breaks(shop: Shop, mode: str) -> None:
    """In the middle of a run: nothing of the batch is in, what was in stays, the next run goes on."""
    shop.fill(1, 40)
    folder = shop.project(mode, chunks={"size": 10}, connections=1)

    def cut() -> None:
        shop.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'esker'")

    with pytest.raises(SourceUnavailable, match="the source's database"):
        folder.run(listen=at(Step.READ, cut, nth=2 if mode == "append" else 1))
    if mode == "append":
        assert ids(folder) == list(range(1, 11))
    folder.run()
    assert ids(folder) == list(range(1, 41))


def test_another_column_at_the_source(shop: Shop) -> None:
    shop.fill(1, 2)
    folder = shop.project("upsert", cursor="id")
    folder.run()
    shop.sql("ALTER TABLE orders ADD COLUMN price numeric(10,2)")
    shop.sql("INSERT INTO orders VALUES (3, 'new', now(), 9.95)")
    folder.run()
    assert [str(row[1]) for row in folder.rows("shop.sales", "id", "price")] == ["None", "None", "9.95"]


def test_peek_and_a_full_backfill(shop: Shop) -> None:
    shop.fill(1, 20)
    folder = shop.project("upsert", cursor="id")
    assert len(folder.open().peek("sales", 2).rows) == 2
    folder.run()
    shop.sql("DELETE FROM orders WHERE id = 2")
    shop.sql("UPDATE orders SET name = 'other' WHERE id = 1")
    result = folder.open().backfill("sales", full=True)
    assert (result.status, result.rows.updated) == ("succeeded", 1), result.error
    assert live(folder) == [1, *range(3, 21)]
    assert folder.run().position["to"] == {"cursor": "20"}
