"""Read a MariaDB database: no snapshots that could be shared, names in other quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def test_a_wrong_password(make_folder: MakeFolder, orders: MariaDb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "quite-wrong-indeed")
    with pytest.raises(SourceRefused) as caught:
        project(make_folder, orders, "replace").run()
    assert "Access denied" in caught.value.reason
    assert "quite-wrong-indeed" not in str(caught.value.as_json())
