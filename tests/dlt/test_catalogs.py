"""dlt pipelines load into catalogs that are servers, as they do into the embedded one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dlt
import pytest

from tests.conformance.lakes import made
from tests.dlt.shop import Shop
from tests.folder import Folder

UPSERT = {"disposition": "merge", "strategy": "upsert"}
SWAP = {"disposition": "merge", "strategy": "delete-insert"}


def events(upto: int) -> Any:
    """Return events, of which dlt loads those behind the last one: it keeps in its state which that is."""
    rows = dlt.resource([{"id": n} for n in range(upto)], name="events", write_disposition="append")
    return rows.apply_hints(incremental=dlt.sources.incremental("id"))


def orders(rows: list[dict[str, Any]]) -> Any:
    return dlt.resource(rows, name="orders", primary_key="id", write_disposition=UPSERT)


def days(rows: list[dict[str, Any]]) -> Any:
    return dlt.resource(rows, name="days", merge_key="day", write_disposition=SWAP)


def prices(rows: list[dict[str, Any]]) -> Any:
    return dlt.resource(rows, name="prices", write_disposition="replace")


@pytest.mark.spark
@pytest.mark.server
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("rest", marks=pytest.mark.xdist_group("seaweedfs")),
        pytest.param("s3tables", marks=[pytest.mark.soak, pytest.mark.xdist_group("seaweedfs")]),
        pytest.param("hive", marks=pytest.mark.soak),
        pytest.param("nessie", marks=pytest.mark.soak),
    ],
)
def test_dispositions(kind: str, request: pytest.FixtureRequest, tmp_path: Path, spark_running: None) -> None:
    """Append, upsert, delete-insert and replace with nested rows; dlt finds its state again."""
    with made(kind, request, tmp_path / "lake") as lake:
        folder = Folder(tmp_path / "work", **lake.project, pipelines={})
        # SeaweedFS takes names as Amazon S3 Tables does: none begins with an underscore.
        is_plain = kind in ("rest", "s3tables")
        shop = Shop(folder, tmp_path / "dlt", **({"plain_names": True} if kind == "rest" else {}))
        shop.run(
            [
                events(3),
                orders([{"id": n, "state": "new", "lines": [{"sku": f"{n}"}]} for n in (1, 2)]),
                days([{"day": "mon", "n": 1}, {"day": "mon", "n": 2}, {"day": "tue", "n": 3}]),
                prices([{"id": 1, "amount": 1.5}]),
            ]
        )
        shop.work = tmp_path / "elsewhere"
        shop.run(
            [
                events(5),
                orders([{"id": 2, "state": "sent", "lines": [{"sku": "x"}], "note": "late"}]),
                days([{"day": "mon", "n": 7}]),
                prices([{"id": 2, "amount": 2.5}]),
            ]
        )
        assert shop.rows("events", "id") == [(n,) for n in range(5)]
        assert shop.rows("orders", "id", "state", "note") == [(1, "new", None), (2, "sent", "late")]
        assert shop.rows("orders__lines", "sku") == [("1",), ("x",)]
        assert shop.rows("days", "day", "n") == [("mon", 7), ("tue", 3)]
        assert shop.rows("prices", "id", "amount") == [(2, 2.5)]
        assert len(shop.rows("dlt_loads" if is_plain else "_dlt_loads")) == 2
