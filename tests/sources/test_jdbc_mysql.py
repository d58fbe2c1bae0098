"""Read a database of MySQL itself, by MariaDB's driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.folder import Folder
from tests.servers.mysql import MySql, running_mysql

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.server, pytest.mark.xdist_group("mysql")]

MakeFolder = Callable[..., Folder]


@pytest.fixture(scope="module")
def server() -> Iterator[MySql]:
    with running_mysql() as server:
        yield server


@pytest.fixture
def orders(server: MySql, monkeypatch: pytest.MonkeyPatch) -> MySql:
    monkeypatch.setenv("SHOP_PASSWORD", server.password)
    rows = ", ".join(
        f"({n}, 'order {n} é', '2026-01-01 12:00:00.000001' + interval {n} minute, "
        f"'2026-01-01 12:00:00.000001' + interval {n} minute, {n} / 4, {n} % 2)"
        for n in range(1, 31)
    )
    server.sql(
        "SET NAMES utf8mb4; DROP TABLE IF EXISTS orders; "
        "CREATE TABLE orders (id bigint unsigned PRIMARY KEY, "
        "`na``me` varchar(50), at datetime(6), seen timestamp(6) NULL, price decimal(10,2), "
        f"paid tinyint(1)) CHARACTER SET utf8mb4; INSERT INTO orders VALUES {rows}"
    )
    return server


def project(make_folder: MakeFolder, server: MySql, mode: str, **keys: Any) -> Folder:
    source = {
        "type": "jdbc",
        "url": f"jdbc:mysql://127.0.0.1:{server.port}/shop",
        "user": server.user,
        "password": "${SHOP_PASSWORD}",
        "table": "orders",
        **keys,
    }
    pipeline = {"source": source, "table": "shop.sales", "mode": mode, "key": ["id"]}
    return make_folder(pipelines={"sales": pipeline})


def test_a_whole_table(make_folder: MakeFolder, orders: MySql) -> None:
    """Values of its types arrive as they are; what goes and changes is found."""
    assert orders.sql("SELECT version()").startswith("5.6.")
    folder = project(make_folder, orders, "sync", chunks={"size": 7})
    assert folder.run().rows.inserted == 30
    [row] = [row for row in folder.rows("shop.sales", "id", "`na``me`", "at", "price", "paid") if row[0] == 3]
    assert (int(row[0]), row[1], str(row[2])) == (3, "order 3 é", "2026-01-01 12:03:00.000001")
    assert (str(row[3]), row[4]) == ("0.75", True)
    orders.sql("DELETE FROM orders WHERE id = 3; UPDATE orders SET price = 100 WHERE id = 4")
    counts = folder.run().rows
    assert (counts.missing, counts.updated, counts.unchanged) == (1, 1, 28)


def test_what_is_new_by_a_cursor(make_folder: MakeFolder, orders: MySql) -> None:
    """The next run reads what was changed since, and no more."""
    folder = project(make_folder, orders, "upsert", cursor="seen", cursor_order="commit")
    assert folder.run().rows.inserted == 30
    orders.sql("UPDATE orders SET price = 9, seen = '2026-01-02 00:00:00' WHERE id = 7")
    result = folder.run()
    assert (result.rows.read, result.rows.updated) == (1, 1)
