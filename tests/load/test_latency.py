"""A store that is far away: requests go out side by side, so that few of them are waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.load.works import Works
from tests.servers.proxy import Traffic, running_proxy
from tests.servers.seaweedfs import running_seaweedfs

pytestmark = [pytest.mark.spark, pytest.mark.server]

MOST = 50
"""So many requests may one small batch wait for."""
FILES = 20
LATENCY = 0.02


def test_small_batches_wait_for_few_requests(
    tmp_path: Path, spark_running: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Latency costs an upsert at most fifty times, however many files it looks into."""
    traffic = Traffic()
    with running_proxy("", traffic) as near_store, running_seaweedfs(near_store.address) as seaweedfs:
        near_store.upstream = seaweedfs.endpoint
        for name, value in seaweedfs.environment.items():
            monkeypatch.setenv(name, value)
        with running_proxy(seaweedfs.uri, traffic) as near_catalog:
            catalog = seaweedfs.catalog(seaweedfs.new_warehouse(), near_catalog.address)
            project = {"catalog": catalog, "store": seaweedfs.store(near_store.address)}
            works = Works(tmp_path / "project", project, order_by="at", deletes="hard", lane="small")
            for number in range(FILES):
                # Keys of each file lie between those of all others: no file can be left out.
                works.load([{"id": f"{k:03}-{number:02}", "at": 1, "name": "old"} for k in range(50)])
            works.load([{"id": "000-00", "at": 2, "name": "old", "deleted": True}])
            works.load([{"id": "000-00", "at": 3, "name": "old"}])
            near_catalog.latency = near_store.latency = LATENCY
            for size in (1, 100):
                batch = [
                    {
                        "id": f"{k % 50:03}-{k % FILES:02}",
                        "at": 3 + size,
                        "name": f"new {size}",
                        "deleted": k % 10 == 9,
                    }
                    for k in range(size)
                ]
                traffic.exchanges.clear()
                result = works.load(batch)
                waited, sent = len(traffic.in_sequence()), len(traffic.exchanges)
                print(f"{size} rows: {sent} requests, {waited} of them in sequence, {result.seconds:.2f} s")
                assert result.rows.updated + result.rows.deleted == size
                assert sent > FILES, "every file was looked into, and the proxies have seen it"
                assert waited <= MOST, "\n".join(map(str, traffic.in_sequence()))
