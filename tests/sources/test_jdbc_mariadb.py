"""Read a MariaDB database: no snapshots that could be shared, names in other quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from esker.errors import SourceRefused, SourceUnavailable
from esker.events import Step
from tests.folder import Folder
from tests.servers.cutting import running_cutting
from tests.servers.mariadb import MariaDb, running_mariadb
from tests.sources.restless import most_at_once, writing
from tests.sources.test_jdbc import at

pytestmark = [pytest.mark.spark, pytest.mark.server, pytest.mark.xdist_group("mariadb")]

MakeFolder = Callable[..., Folder]


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDb]:
    with running_mariadb() as server:
        yield server


@pytest.fixture
def orders(server: MariaDb, monkeypatch: pytest.MonkeyPatch) -> MariaDb:
    monkeypatch.setenv("SHOP_PASSWORD", server.password)
    server.sql(
        "DROP TABLE IF EXISTS orders; CREATE TABLE orders (id bigint unsigned PRIMARY KEY, "
        "`na``me` varchar(50), at datetime(6), seen timestamp(6) NULL, price decimal(10,2), paid tinyint(1));"
        "INSERT INTO orders SELECT seq, concat('order ', seq), '2026-01-01 12:00:00.000001' + interval seq "
        "minute, '2026-01-01 12:00:00.000001' + interval seq minute, seq / 4, seq % 2 FROM seq_1_to_30;"
    )
    return server


def project(
    make_folder: MakeFolder, server: MariaDb, mode: str, scheme: str = "mariadb", **keys: Any
) -> Folder:
    source = {
        "type": "jdbc",
        "url": f"jdbc:{scheme}://127.0.0.1:{server.port}/shop",
        "user": server.user,
        "password": "${SHOP_PASSWORD}",
        "table": "orders",
        **keys,
    }
    keyed = {} if mode in ("append", "replace") else {"key": ["id"]}
    return make_folder(pipelines={"sales": {"source": source, "table": "shop.sales", "mode": mode, **keyed}})


@pytest.mark.parametrize("scheme", ["mariadb", "mysql"])
def test_a_whole_table(make_folder: MakeFolder, orders: MariaDb, scheme: str) -> None:
    """Rows hold values, not the names of their columns."""
    folder = project(make_folder, orders, "sync", scheme)
    assert folder.run().rows.inserted == 30
    [row] = [row for row in folder.rows("shop.sales", "id", "`na``me`", "at", "price", "paid") if row[0] == 3]
    assert (int(row[0]), row[1], str(row[2])) == (3, "order 3", "2026-01-01 12:03:00.000001")
    assert (str(row[3]), row[4]) == ("0.75", True)
    orders.sql("DELETE FROM orders WHERE id = 3; UPDATE orders SET price = 100 WHERE id = 4")
    counts = folder.run().rows
    assert (counts.missing, counts.updated, counts.unchanged) == (1, 1, 28)


def test_chunks(make_folder: MakeFolder, orders: MariaDb) -> None:
    folder = project(make_folder, orders, "append", chunks={"size": 5}, connections=2)
    result = folder.run()
    assert (result.rows.read, result.batches) == (30, 3)
    assert sorted(int(row[0]) for row in folder.rows("shop.sales", "id")) == list(range(1, 31))


def test_chunks_are_read_at_once(make_folder: MakeFolder, orders: MariaDb) -> None:
    """Each by a connection of its own, where a batch need not be of one moment; else all is one query."""
    query = "SELECT * FROM orders WHERE id % 15 <> 10 OR sleep(0.5) = 0"
    asleep = "SELECT count(*) FROM information_schema.processlist WHERE state = 'User sleep'"
    keys: dict[str, Any] = {"table": None, "query": query, "chunks": {"column": "id", "size": 15}}
    for mode, most in (("append", 2), ("replace", 1)):
        folder = project(make_folder, orders, mode, connections=2, **keys)
        folder.change(table=f"shop.{mode}")
        with most_at_once(lambda: int(orders.sql(asleep))) as seen:
            assert folder.run().rows.inserted == 30
        assert seen() == most


def test_reading_locks_nothing(make_folder: MakeFolder, orders: MariaDb) -> None:
    """While a chunk is being read, every row of the table can be changed, and others come and go."""
    query = "SELECT * FROM orders WHERE id % 15 <> 10 OR sleep(1) = 0"
    keys: dict[str, Any] = {"table": None, "query": query, "chunks": {"column": "id", "size": 15}}
    folder = project(make_folder, orders, "append", connections=1, **keys)
    is_open = "SELECT count(*) > 0 FROM information_schema.processlist WHERE state = 'User sleep'"
    # In one transaction: a row that is never committed is in no chunk.
    passing = "BEGIN; INSERT INTO orders (id) VALUES (99); DELETE FROM orders WHERE id = 99; COMMIT"
    meanwhile = []

    def write(number: int) -> None:
        patience = "SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1"
        told = orders.sql(f"{patience}; {is_open}; UPDATE orders SET price = {number}; {passing}; {is_open}")
        meanwhile.append(told.split())

    with writing(write) as writer:
        assert folder.run().rows.inserted == 30
    assert not writer.failures
    assert ["1", "1"] in meanwhile, "a read that was open before the writing, and after it"


def test_rows_that_move_all_the_while(make_folder: MakeFolder, orders: MariaDb) -> None:
    """A sync is one query: a row that somebody moves from one end of the table to the other is there once."""
    orders.sql("INSERT INTO orders SELECT seq, 'x', now(), now(), 1, 1 FROM seq_31_to_2000")
    folder = project(make_folder, orders, "sync", chunks={"size": 100})
    moves = "UPDATE orders SET id = 5000 WHERE id = 1; UPDATE orders SET id = 1 WHERE id = 5000;" * 20
    with writing(lambda _: orders.sql(moves)) as writer:
        for _ in range(2):
            assert folder.run().rows.read == 2_000
    assert writer.times > 1
    assert not writer.failures
    folder.run()
    live = [row[0] for row in folder.rows("shop.sales", "id", "deleted") if not row[1]]
    assert sorted(map(int, live)) == list(range(1, 2_001))


def test_rows_that_change_between_chunks(make_folder: MakeFolder, orders: MariaDb) -> None:
    """What appears, changes, moves or vanishes while a table is read: the next run has it right."""
    folder = project(make_folder, orders, "upsert", chunks={"size": 5}, connections=1)

    def change() -> None:
        orders.sql(
            "UPDATE orders SET price = 99 WHERE id IN (1, 30); DELETE FROM orders WHERE id = 28; "
            "UPDATE orders SET id = 1002 WHERE id = 29; INSERT INTO orders (id, price) VALUES (0, 1), (50, 1)"
        )

    first = folder.run(listen=at(Step.READ, change, nth=3))
    assert first.batches == 6
    folder.run()
    rows = [(int(row[0]), str(row[1])) for row in folder.rows("shop.sales", "id", "price")]
    assert len(dict(rows)) == len(rows)
    expected = {id: f"{id / 4:.2f}" for id in range(1, 28)} | {0: "1.00", 1: "99.00", 30: "99.00", 50: "1.00"}
    assert dict(rows) == expected | {1002: "7.25"}


def test_a_server_that_goes_away(make_folder: MakeFolder, orders: MariaDb) -> None:
    """In the middle of a run: what was in stays, nothing of the others is in, the next run goes on."""
    with running_cutting("127.0.0.1", orders.port) as line:
        url = f"jdbc:mariadb://127.0.0.1:{line.port}/shop"
        folder = project(make_folder, orders, "append", chunks={"size": 10}, connections=1, url=url)

        def cut() -> None:
            line.is_down = True

        with pytest.raises(SourceUnavailable) as caught:
            folder.run(listen=at(Step.READ, cut, nth=2))
        assert caught.value.exit_status == 4
        assert sorted(int(row[0]) for row in folder.rows("shop.sales", "id")) == list(range(1, 11))
        line.is_down = False
        folder.run()
    assert sorted(int(row[0]) for row in folder.rows("shop.sales", "id")) == list(range(1, 31))


@pytest.mark.parametrize("cursor", ["id", "at", "seen", "na`me"])
def test_cursors(make_folder: MakeFolder, orders: MariaDb, cursor: str) -> None:
    folder = project(make_folder, orders, "append", cursor=cursor, cursor_order="commit")
    assert folder.run().rows.read == 30
    assert folder.run().rows.read == 0
    # One beyond the other, further than a double can tell.
    for number in (9223372036854775808, 9223372036854775809):
        name = f"z\\\\{number} it''s"
        values = f"{number}, '{name}', '2026-02-01' + interval {number % 10} microsecond"
        orders.sql(
            f"INSERT INTO orders SELECT {values}, '2026-02-01' + interval {number % 10} microsecond, 1, 1"
        )
        assert folder.run().rows.read == 1
    assert folder.run().rows.read == 0


@pytest.mark.parametrize(("cursor", "lag"), [("id", 5), ("at", "5m")])
def test_rows_that_are_committed_late(
    make_folder: MakeFolder, orders: MariaDb, cursor: str, lag: int | str
) -> None:
    """What is nearer than the lag to the highest value is for later: lower values may still come."""
    folder = project(make_folder, orders, "append", cursor=cursor, lag=lag)
    insert = (
        "INSERT INTO orders (id, at, price) SELECT {0}, '2026-01-01 12:00:00.000001' + interval {1} minute, 1"
    )
    with orders.session() as late:
        late.send("BEGIN; " + insert.format(31, 31))
        orders.sql(insert.format(32, 32) + ";" + insert.format(34, 34))
        assert folder.run().rows.read == 29
        assert folder.run().rows.read == 0
        late.send("COMMIT")
    orders.sql(insert.format(33, 32) + ";" + insert.format(40, 40))
    assert folder.run().rows.read == 5
    assert sorted(int(row[0]) for row in folder.rows("shop.sales", "id")) == list(range(1, 35))


@pytest.mark.parametrize("cursor", ["at", "seen"])
def test_windows(make_folder: MakeFolder, orders: MariaDb, cursor: str) -> None:
    """By the server's clock, in UTC, whatever its zone is."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    moment = f"TIMESTAMP'{hour:%F %T}' + interval seq minute + interval 500000 microsecond"
    orders.sql(
        "SET time_zone = '+00:00'; DELETE FROM orders;"
        f"INSERT INTO orders SELECT seq, 'x', {moment}, {moment}, 1, 1 FROM seq_0_to_69;"
        "SET GLOBAL time_zone = '-07:00'"
    )
    try:
        window = {"every": "1h", "start": hour.isoformat(), "split_at": 40}
        folder = project(make_folder, orders, "upsert", cursor=cursor, window=window)
        folder.change(order_by=cursor)
        assert folder.run().rows.inserted == 70
        assert next(line.until - line.since for line in folder.open().windows("sales")) == timedelta(hours=2)
        rows = {int(row[0]): row[1] for row in folder.rows("shop.sales", "id", cursor)}
        assert str(rows[69]).startswith(f"{hour + timedelta(minutes=69):%F %T}.5")
        # Where the records begin, the database is asked.
        folder = project(make_folder, orders, "upsert", cursor=cursor, window={"every": "1h"})
        folder.change(order_by=cursor, table="shop.again")
        assert folder.run().rows.inserted == 70
    finally:
        orders.sql("SET GLOBAL time_zone = '+00:00'")


def test_clocks(make_folder: MakeFolder, orders: MariaDb) -> None:
    """A database whose clock is behind is read later. One that jumps ahead does not make Esker take for read
    what is still to come, and one that jumps back repeats and forgets nothing."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    values = (f"({id}, '{hour - timedelta(minutes=90 - id * 30):%F %T}')" for id in (0, 2))
    orders.sql(f"DELETE FROM orders; INSERT INTO orders (id, at) VALUES {', '.join(values)}")
    window = {"every": "1h", "start": (hour - timedelta(hours=2)).isoformat()}
    folder = project(make_folder, orders, "append", cursor="at", window=window)

    def run_at(moment: datetime) -> tuple[int, datetime]:
        # What the server sets for everybody who connects and is not its administrator.
        orders.sql(f"SET GLOBAL init_connect = 'SET timestamp = {int(moment.timestamp())}'")
        rows = folder.run().rows.read
        return rows, max(line.until for line in folder.open().windows("sales") if line.status == "covered")

    try:
        assert run_at(hour - timedelta(minutes=50)) == (1, hour - timedelta(hours=1))
        rows, until = run_at(hour + timedelta(days=1))
        assert rows == 1
        assert hour <= until <= datetime.now(UTC)
        assert run_at(hour - timedelta(days=1)) == (0, until)
    finally:
        orders.sql("SET GLOBAL init_connect = ''")
    assert folder.run().rows.read == 0
    assert [int(row[0]) for row in folder.rows("shop.sales", "id")] == [0, 2]


def test_windows_of_days(make_folder: MakeFolder, orders: MariaDb) -> None:
    """A row that knows its day only is read when the day is over."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    orders.sql(
        "DROP TABLE orders; CREATE TABLE orders (id int, day date); INSERT INTO orders VALUES "
        f"(1, '{today - timedelta(days=1):%F}'), (2, '{today:%F}')"
    )
    window = {"every": "6h", "start": (today - timedelta(hours=12)).isoformat()}
    folder = project(make_folder, orders, "append", cursor="day", window=window)
    assert folder.run().rows.inserted == 1


def test_many_tables(make_folder: MakeFolder, orders: MariaDb) -> None:
    """A schema is a database there."""
    orders.sql("CREATE OR REPLACE TABLE `an.other` (`b` int, `a` int, PRIMARY KEY (`a`, `b`))")
    orders.sql("INSERT INTO `an.other` VALUES (1, 2); CREATE OR REPLACE VIEW seen AS SELECT * FROM orders")
    folder = project(make_folder, orders, "append", tables="shop.*", table=None)
    folder.change(mode="upsert", table="raw.{schema}_{table}")
    report = folder.open().run_all()
    assert {result.pipeline: result.rows.inserted for result in report.pipelines} == {
        "sales.shop.an_other": 1,
        "sales.shop.orders": 30,
    }
    assert folder.open().names() == ["sales.shop.an_other", "sales.shop.orders"]
    orders.sql("DROP TABLE `an.other`; DROP VIEW seen")


def test_a_wrong_password(make_folder: MakeFolder, orders: MariaDb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "quite-wrong-indeed")
    with pytest.raises(SourceRefused) as caught:
        project(make_folder, orders, "replace").run()
    assert "Access denied" in caught.value.reason
    assert "quite-wrong-indeed" not in str(caught.value.as_json())
