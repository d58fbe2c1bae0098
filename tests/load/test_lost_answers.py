"""A REST catalog commits, and its answer does not arrive: the batch is recognised, whoever came behind it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from esker.errors import Fenced
from tests.load.works import Works
from tests.servers.proxy import CLOSED, SILENT, Proxy, running_proxy
from tests.servers.seaweedfs import SeaweedFS

pytestmark = [pytest.mark.spark, pytest.mark.server]

TABLE, LOG = "/tables/works", "/tables/works__changes"
ANSWERS = (CLOSED, "500", "503", "504", "429")


@pytest.fixture
def proxy(seaweedfs: SeaweedFS) -> Iterator[Proxy]:
    with running_proxy(seaweedfs.uri) as proxy:
        yield proxy


@pytest.fixture
def works(seaweedfs: SeaweedFS, proxy: Proxy, tmp_path: Path, spark_running: None) -> Works:
    """A table behind the proxy, with one row."""
    catalog = seaweedfs.catalog(seaweedfs.new_warehouse(), proxy.address)
    catalog["properties"] = {"rest.client.socket-timeout-ms": 5000}
    project = {"catalog": catalog, "store": seaweedfs.store()}
    works = Works(tmp_path / "project", project, order_by="at", lane="small")
    works.load([{"id": 0, "at": 1, "name": "first"}])
    return works


def check(works: Works, names: dict[int, str], changesets: int) -> None:
    """See that the table holds exactly these rows, and the log each changeset once."""
    assert {id: row["name"] for id, row in works.rows().items()} == names
    logged = [row["_esker_changeset"] for row in works.log()]
    assert sorted(set(logged)) == list(range(1, changesets + 1))
    assert len(works.snapshots("lake.shop.works__changes")) == changesets
    assert works.outbox() == [] or works.outbox()[-1]["n"] == changesets


def test_lost_answers_are_recognised(works: Works, proxy: Proxy) -> None:
    """Scenario 23 on REST, however the answer gets lost: at the table's commit, then at the log's."""
    names = {0: "first"}
    for number, answer in enumerate((*ANSWERS, SILENT), start=1):
        for place, id in ((TABLE, 2 * number), (LOG, 2 * number + 1)):
            proxy.lose_answer("POST", place, answer)
            before = len(works.snapshots())
            result = works.load(
                [{"id": id, "at": 1, "name": answer}, {"id": 0, "at": id, "name": f"{answer} {id}"}]
            )
            assert not proxy.is_waiting
            assert (result.status, result.rows.inserted, result.rows.updated) == ("succeeded", 1, 1)
            assert result.log_lag == 0
            assert len(works.snapshots()) == before + 1, f"{answer} at {place}: committed once"
            names |= {id: answer, 0: f"{answer} {id}"}
    check(works, names, changesets=1 + 2 * (len(ANSWERS) + 1))


def test_lost_answers_with_a_foreign_commit_right_behind(works: Works, proxy: Proxy) -> None:
    """What a stranger committed stays, and the batch is neither repeated nor taken for lost."""
    names = {0: "first"}
    for number, answer in enumerate(ANSWERS, start=1):
        columns = "id, at, name, deleted, _esker_hash"  # Spark 3.5 wants all of them
        row = f"{100 + number}, 1, 'foreign', NULL, NULL"
        foreign = f"INSERT INTO lake.shop.works ({columns}) VALUES ({row})"
        proxy.lose_answer("POST", TABLE, answer, behind=partial(works.sql, foreign))
        before = len(works.snapshots())
        result = works.load(
            [{"id": number, "at": 1, "name": answer}, {"id": 0, "at": number, "name": answer}]
        )
        assert (result.status, result.rows.inserted) == ("succeeded", 1)
        assert len(works.snapshots()) == before + 2, f"{answer}: one of ours, one of the stranger's"
        assert works.snapshots()[-2] == result.snapshot_id
        names |= {number: answer, 0: answer, 100 + number: "foreign"}
    check(works, names, changesets=1 + len(ANSWERS))


def test_lost_answers_with_a_successor_right_behind(works: Works, proxy: Proxy) -> None:
    """Another run of the pipeline has gone on: fenced, the batch is in, and this run claims nothing again."""
    successor = Works(
        works.folder.path.parent / "successor",
        {key: works.folder.document[key] for key in ("catalog", "store")},
        order_by="at",
        lane="small",
    )
    names = {0: "first"}
    for number, answer in enumerate(ANSWERS, start=1):
        next_batch = [{"id": 100 + number, "at": 1, "name": "successor"}]
        proxy.lose_answer("POST", TABLE, answer, behind=partial(successor.load, next_batch))
        with pytest.raises(Fenced) as caught:
            works.load([{"id": number, "at": 1, "name": answer}])
        assert caught.value.landed == "yes", answer
        names |= {number: answer, 100 + number: "successor"}
    works.load([{"id": 0, "at": 2, "name": "last"}])
    check(works, names | {0: "last"}, changesets=2 + 2 * len(ANSWERS))
