"""Read a MariaDB database: no snapshots that could be shared, names in other quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from esker.errors import SourceRefused
from tests.folder import Folder
from tests.servers.mariadb import MariaDb, running_mariadb

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


@pytest.mark.parametrize("cursor", ["id", "at", "seen", "na`me"])
def test_cursors(make_folder: MakeFolder, orders: MariaDb, cursor: str) -> None:
    folder = project(make_folder, orders, "append", cursor=cursor)
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
