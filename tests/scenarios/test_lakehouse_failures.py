"""The example with sales when something fails: the table stays as it was, and the error is clear."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from examples.lakehouse import run as example

import esker
from esker.errors import CatalogUnreachable, EskerError, StoreUnreachable
from esker.events import Listener, Step, silent
from tests.load.works import at
from tests.recover.damage import cut_metadata
from tests.scenarios.test_lakehouse import DAYS, SALES, Lakehouse, opened
from tests.servers.cutting import Cutting, running_cutting
from tests.servers.seaweedfs import SeaweedFS, running_seaweedfs
from tests.servers.trino import Trino

pytestmark = [pytest.mark.spark, pytest.mark.server, pytest.mark.soak]


@dataclass
class Fragile:
    """The example, on lines that can be cut. Trino has lines of its own."""

    lakehouse: Lakehouse
    to_catalog: Cutting
    to_store: Cutting

    def check_failure(self, listen: Listener, kind: type[EskerError], words: str) -> None:
        """Load a second day, which fails; nothing of it is to be seen."""
        before = self.lakehouse.snapshots()
        example.deliver(self.lakehouse.folder, 1)
        with pytest.raises(kind) as caught:
            esker.open(self.lakehouse.folder).run("sales", listen)
        assert words in str(caught.value.as_json())
        assert caught.value.remedy
        assert self.lakehouse.snapshots() == before
        assert self.lakehouse.sql(f"SELECT count(*), max(ingestion_date) FROM {SALES}") == [
            [example.ORDERS, DAYS[0]]
        ]

    def check_recovery(self) -> None:
        """The next run loads the day, once."""
        assert example.load(self.lakehouse.folder) == example.ORDERS
        rows = self.lakehouse.sql(f"SELECT order_id FROM {SALES} ORDER BY 1")
        assert rows == [[row["order_id"]] for number in range(2) for row in example.sales(number)]


@pytest.fixture
def fragile(
    tmp_path: Path, spark_running: None, trino: Trino, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Fragile]:
    """A SeaweedFS of its own, whose catalog tells clients that the store is behind the proxy."""
    with (
        running_cutting("127.0.0.1", 0) as to_store,
        running_seaweedfs(f"http://127.0.0.1:{to_store.port}") as server,
        running_cutting("127.0.0.1", server.rest_port) as to_catalog,
        opened(tmp_path / "lakehouse", server, trino, monkeypatch) as lakehouse,
    ):
        to_store.upstream = ("127.0.0.1", server.s3_port)
        monkeypatch.setenv("CATALOG_URI", f"http://127.0.0.1:{to_catalog.port}")
        monkeypatch.setenv("S3_ENDPOINT", f"http://127.0.0.1:{to_store.port}")
        lakehouse.deliver(0)
        yield Fragile(lakehouse, to_catalog, to_store)


def test_catalog_unreachable(fragile: Fragile) -> None:
    """Before a run, and in the middle of one."""
    fragile.to_catalog.is_down = True
    fragile.check_failure(silent, CatalogUnreachable, "iceberg")
    fragile.to_catalog.is_down = False
    fragile.check_failure(at(Step.STAGED, _cut(fragile.to_catalog)), CatalogUnreachable, "cannot be used")
    fragile.to_catalog.is_down = False
    fragile.check_recovery()


def test_store_down_while_it_is_written(fragile: Fragile) -> None:
    fragile.check_failure(at(Step.READ, _cut(fragile.to_store)), StoreUnreachable, "failed to respond")
    fragile.to_store.is_down = False
    fragile.check_recovery()


def test_quota_exceeded(fragile: Fragile) -> None:
    """The server takes nothing more, and says so in its own way."""
    server: SeaweedFS = fragile.lakehouse.server
    server.exceed_quota(fragile.lakehouse.warehouse)
    fragile.check_failure(silent, StoreUnreachable, "internal error")
    server.lift_quota(fragile.lakehouse.warehouse)
    fragile.check_recovery()


def test_two_writers_in_one_partition(fragile: Fragile) -> None:
    """Trino inserts into the very day that a run is about to publish: both are there, once."""
    lakehouse = fragile.lakehouse
    example.deliver(lakehouse.folder, 1)
    insert = f"INSERT INTO {SALES} VALUES ('OTHER', 'CUST-1', 1.50, 'NL', DATE '{DAYS[1]}')"
    done = esker.open(lakehouse.folder).run("sales", at(Step.BEFORE_COMMIT, lambda: lakehouse.sql(insert)))
    assert (done.status, done.rows.inserted) == ("succeeded", example.ORDERS)
    found = lakehouse.sql(f"SELECT order_id FROM {SALES} WHERE ingestion_date = DATE '{DAYS[1]}' ORDER BY 1")
    assert found == [*([row["order_id"]] for row in example.sales(1)), ["OTHER"]]
    assert len(lakehouse.snapshots()) == 3


def test_corrupted_metadata(fragile: Fragile) -> None:
    """It is found, and repaired as `esker fsck --repair` does; the next run loads what is lost by that."""
    lakehouse = fragile.lakehouse
    lakehouse.deliver(1)
    project = esker.open(lakehouse.folder)
    found, plan = cut_metadata(project, "iceberg", "lakehouse.sales")
    project.repair(found, plan)
    assert esker.open(lakehouse.folder).fsck().is_clean
    example.load(lakehouse.folder)
    rows = lakehouse.sql(f"SELECT order_id FROM {SALES} ORDER BY 1")
    assert rows == [[row["order_id"]] for number in range(2) for row in example.sales(number)]


def _cut(line: Cutting) -> Callable[[], None]:
    def cut() -> None:
        line.is_down = True

    return cut
