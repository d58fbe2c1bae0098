"""A table in a search index: every document as the table has it, through versions, refusals and a reindex."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from esker.errors import ReindexNeeded, TargetUnavailable
from esker.pipeline.api import OpenProject
from tests.folder import Folder
from tests.load.works import Works
from tests.servers.search import SearchServer
from tests.servers.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.server]

TRANSFORM = """
import esker

@esker.transform
def to_work(row):
    if row["title"] == "hidden":
        return None
    return {"title": row["title"], "year": row["year"], "items": [item["name"] for item in row["items"]]}
"""
LETTERS = "lake.shop.search__dead"
MAPPINGS = {"properties": {"title": {"type": "text"}, "year": {"type": "long"}}}


@pytest.fixture(params=["opensearch", "elasticsearch"])
def server(request: pytest.FixtureRequest) -> SearchServer:
    """Each of the search servers."""
    found: SearchServer = request.getfixturevalue(request.param)
    return found


def museum(path: Path, server: SearchServer, settings: dict[str, Any] | None = None, **keys: Any) -> Works:
    """Works with their items, and an index of them."""
    alias = f"works-{path.name.replace('_', '-').lower()[-40:]}"
    consumer = {
        "from": "works",
        "transform": "transforms/works.py:to_work",
        "enrich": {"items": {"table": "shop.items", "on": {"id": "work_id"}, "many": True}},
        "to": {
            "type": server.type,
            "connection": "search",
            "index": alias,
            "mappings": MAPPINGS,
            "settings": settings or {},
        },
        "reindex": {"rows": 100},
        **keys,
    }
    works = Works(
        path,
        project={
            "connections": {"search": {"type": server.type, "hosts": [server.address], "retries": 2}},
            "consumers": {"search": consumer},
        },
        columns={"id": "int", "title": "string", "year": "string"},
        delete_when="title = 'gone'",
        lane="small",
    )
    works.folder.write("transforms/works.py", TRANSFORM)
    works.folder.document["pipelines"]["items"] = Folder.files_pipeline(
        "items/*.csv", table="shop.items", mode="upsert", key=["id"], lane="small"
    )
    works.folder.save()
    works.project = works.folder.open()
    works.project.load("items", [{"id": n, "work_id": n % 7, "name": f"item {n}"} for n in range(20)])
    return works


def work(number: int, title: str = "a work", year: str = "1900") -> dict[str, Any]:
    return {"id": number, "title": title, "year": year}


def index_of(project: OpenProject) -> str:
    found: str = project.project.consumers["search"].to.index  # type: ignore[attr-defined]
    return found


def check(works: Works, server: SearchServer, without: tuple[int, ...] = ()) -> None:
    """Compare every document with the tables."""
    items: dict[int, list[str]] = {}
    for item in works.read("lake.shop.items ORDER BY id"):
        items.setdefault(item["work_id"], []).append(item["name"])
    wanted = {
        str(row["id"]): {"title": row["title"], "year": row["year"], "items": items.get(row["id"], [])}
        for row in works.read()
        if not row["deleted"] and row["title"] != "hidden" and row["id"] not in without
    }
    found = server.documents(index_of(works.project))
    assert {id_: {**body, "items": sorted(body["items"])} for id_, body in found.items()} == {
        id_: {**body, "items": sorted(body["items"])} for id_, body in wanted.items()
    }


def test_a_table_in_a_search_index(tmp_path: Path, server: SearchServer, spark_running: None) -> None:
    """Changes, deletes, refusals, dead letters and items arrive; a reindex fills another index."""
    works = museum(tmp_path, server)
    project, alias = works.project, index_of(works.project)
    works.load([work(number) for number in range(300)])
    assert project.deliver("search").rows.sent == 300
    check(works, server)
    hits = server.ask("GET", f"/{alias}/_search", {"query": {"match": {"title": "work"}}})
    assert hits["hits"]["hits"]

    works.load([work(1, "gone"), work(2, "hidden"), work(3, "third"), work(4, "bad year", "unknown")])
    result = project.deliver("search")
    assert (result.rows.sent, result.rows.deleted, result.rows.dead, result.dead) == (1, 2, 1, 1)
    assert server.documents(alias)["4"]["title"] == "a work"
    [letter] = works.read("lake.shop.search__dead")
    assert (letter["id"], letter["stage"]) == ("4", "target")

    works.load([work(4, "good year", "1901"), work(2, "shown")])
    project.load("items", [{"id": 3, "work_id": 5, "name": "moved"}])
    assert project.deliver("search").dead == 0
    check(works, server)

    before = server.behind(alias)
    works.load([work(5, "meanwhile")])
    result = project.reindex("search")
    assert result.error is None
    assert server.behind(alias) != before
    check(works, server)
    works.load([work(6, "after"), work(7, "gone")])
    project.deliver("search")
    check(works, server)
    assert works.project.deliver("search").rows.rows == 0


@pytest.mark.parametrize(
    "server", ["opensearch", pytest.param("elasticsearch", marks=pytest.mark.soak)], indirect=True
)
def test_many_rows_by_spark(tmp_path: Path, server: SearchServer, spark_running: None) -> None:
    """Spark's tasks send them; a server that is not there costs nothing but time."""
    works = museum(tmp_path, server, batch={"spark": 100})
    works.load([work(number, f"title {number}") for number in range(5_000)])
    works.project.deliver("search")
    works.load([work(number, f"other {number}") for number in range(1_000)])
    connections = works.folder.document["connections"]["search"]
    connections["hosts"] = ["http://127.0.0.1:9"]
    works.folder.save()
    with pytest.raises(TargetUnavailable):
        works.folder.open().deliver("search")
    connections["hosts"] = [server.address]
    works.folder.save()
    works.project = works.folder.open()
    assert works.project.deliver("search").rows.sent == 1_000
    server.ask("POST", f"/{index_of(works.project)}/_refresh")
    found = server.ask("GET", f"/{index_of(works.project)}/_count")
    assert found["count"] == 5_000


def test_an_index_that_somebody_removed_is_filled_anew(
    tmp_path: Path, server: SearchServer, spark_running: None
) -> None:
    """Not with what changes next: that would be all that it has."""
    works = museum(tmp_path, server)
    works.load([work(number) for number in range(10)])
    works.project.deliver("search")
    alias = index_of(works.project)
    [behind] = server.behind(alias)
    server.ask("DELETE", f"/{behind}")
    works.load([work(3, "third")])
    with pytest.raises(ReindexNeeded) as raised:
        works.project.deliver("search")
    assert f'no index or alias "{alias}"' in raised.value.reason
    assert server.ask("HEAD", f"/{alias}") is None
    assert works.project.reindex("search").error is None
    works.load([work(4, "fourth")])
    works.project.deliver("search")
    check(works, server)


def test_a_server_that_forgets_deletes(tmp_path: Path, server: SearchServer, spark_running: None) -> None:
    """There, any old write brings a document back. A dead letter and ids that are sent again never do."""
    works = museum(tmp_path, server, {"gc_deletes": "0s"})
    project, alias = works.project, index_of(works.project)
    works.load([work(1), work(4, "bad year", "unknown"), work(5), work(6)])
    assert project.deliver("search").dead == 1
    works.load([work(number, "gone") for number in (4, 5, 6)])
    assert project.deliver("search").rows.deleted == 3
    # As another process writes it that did not know of the delete.
    columns = ", ".join(field.name for field in works.project.engine.spark.table(LETTERS).schema.fields[1:])
    works.sql(f"INSERT INTO {LETTERS} SELECT event + 10, {columns} FROM {LETTERS} WHERE status = 'dead'")
    assert project.deliver("search").dead == 1

    def is_brought_back() -> bool:
        server.ask("POST", f"/{alias}/_refresh")
        try:
            server.ask("PUT", f"/{alias}/_doc/6?version=1&version_type=external", {"title": "old"})
        except AssertionError:
            return False
        return True

    wait_until(is_brought_back, "the server's memory", 30)
    assert set(server.documents(alias)) == {"1", "6"}
    result = project.deliver("search", retry_dead=True)
    assert (result.rows.deleted, result.rows.resolved, result.dead) == (1, 1, 0)
    assert set(server.documents(alias)) == {"1", "6"}
    assert project.reindex("search", ids=["1", "4", "5", "6"]).rows.deleted == 3
    check(works, server)
    assert set(server.documents(alias)) == {"1"}
