"""What Esker writes, others read: PyIceberg and DuckDB from the same embedded catalog, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.folder import Folder

pytestmark = pytest.mark.spark


def test_spark_pyiceberg_and_duckdb_agree(make_folder: Callable[..., Folder]) -> None:
    """Rows, types and columns added later are the same in three readers."""
    columns = {"amount": "decimal(12,2)", "at": "timestamp", "day": "date"}
    folder = make_folder(
        pipelines={"sales": Folder.files_pipeline(columns=columns, partition_by=["month(day)"])}
    )
    header = ["id", "amount", "at", "day", "name"]
    folder.write_csv("landing/a.csv", header, [(1, "1.50", "2026-01-02T03:04:05.678901Z", "2026-01-02", "å")])
    folder.run()
    folder.write_csv("landing/b.csv", [*header, "flag"], [(2, "", "", "2026-02-03", "", "true")])
    folder.run()
    expected: list[tuple[Any, ...]] = [
        (1, Decimal("1.50"), datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), date(2026, 1, 2), "å", None),
        (2, None, None, date(2026, 2, 3), None, True),
    ]

    home = folder.path / ".esker"
    catalog = SqlCatalog("lake", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}/warehouse")
    table = catalog.load_table("shop.sales")
    read = table.scan().to_arrow().sort_by("id")
    assert [tuple(row.values()) for row in read.to_pylist()] == expected

    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    assert duck.sql("select sum(amount), count(flag) from read").fetchone() == (Decimal("1.50"), 1)

    spark = folder.open().table("shop.sales").orderBy("id").collect()
    assert [(row.id, row.amount, row.day, row.name, row.flag) for row in spark] == [
        (row[0], row[1], row[3], row[4], row[5]) for row in expected
    ]
    assert table.metadata.properties["esker.head"]
    assert table.current_snapshot() is not None
    catalog.close()


def test_esker_goes_on_after_pyiceberg_has_written(folder: Folder) -> None:
    """A foreign append through the shared catalog is tolerated; both writers' rows stay."""
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    home = folder.path / ".esker"
    catalog = SqlCatalog("lake", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}/warehouse")
    table = catalog.load_table("shop.sales")
    table.append(table.scan().to_arrow())
    catalog.close()
    folder.write_csv("landing/b.csv", ["id"], [(2,)])
    assert folder.run().rows.inserted == 1
    assert folder.rows() == [(1,), (1,), (2,)]
