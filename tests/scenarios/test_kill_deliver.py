"""Deliveries and reindexes that are killed (signal 9, Java included): no document is missing or wrong.

Among the rows are some that the target refuses, or of which the transform makes nothing: each of them is one
dead letter, whatever was killed. The shelf forgets deletes at once, so that an old write would show.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from esker.engine.iceberg.table import TableId
from esker.errors import EskerError, ReindexNeeded
from esker.events import DeliveryStep
from esker.ledger.dead_letters import DeadLetters
from esker.ledger.reindexes import find_plan
from esker.pipeline.api import OpenProject
from tests.command import CHILD_SPARK
from tests.deliver.test_reindex import refs
from tests.deliver.told import Told, use
from tests.folder import Folder
from tests.load.works import CHANGES, WORKS, Works
from tests.scenarios import mortal
from tests.scenarios.killed_delivery import Point
from tests.scenarios.mortal import Mortal
from tests.scenarios.test_kill import ROOT, wait_for_end
from tests.scenarios.test_search import check, index_of, museum, work
from tests.servers.search import SearchServer
from tests.servers.spark_cluster import ON_CLUSTER, SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.process]

TRANSFORM = """
import esker

@esker.transform
def to_work(row):
    if row["title"] == "hidden":
        return None
    items = [item["name"] for item in row.get("items", ())]
    return {"title": row["title"].strip(), "items": items}
"""
"""Fails for a row without a title."""
MENDED = TRANSFORM.replace(
    "items = [",
    'row["title"] = {None: "untitled", "refused": "taken"}.get(row["title"], row["title"])\n    items = [',
)
"""Makes something of every row that the shelf takes."""
ITEMS = {"items": {"table": "shop.items", "on": {"id": "work_id"}, "many": True, "columns": ["name"]}}
BAD = {"20": "target", "21": "transform"}
"""Rows that cannot be delivered, and where they fail."""

Points = Iterable[tuple[str, int]]


def points(fast: Points, soak: Points) -> pytest.MarkDecorator:
    """Return points for tests; `make soak` has the others."""
    marked = [*((point, []) for point in fast), *((point, [pytest.mark.soak]) for point in soak)]
    return pytest.mark.parametrize(
        ("point", "count"),
        [pytest.param(*point, id="-".join(map(str, point)), marks=m) for point, m in marked],
    )


def started(path: Path, patch: pytest.MonkeyPatch, **keys: Any) -> Told:
    """Return a consumer with small steps and small lots, whose table has one changeset."""
    told = Told(
        path,
        patch,
        {"lane": "small", "delete_when": "title = 'gone'"},
        transform="transforms/works.py:to_work",
        forgets=True,
        more={"spark": CHILD_SPARK},
        **{"batch": {"rows": 15, "send": 4}, "reindex": {"rows": 15}, **keys},
    )
    told.works.folder.write("transforms/works.py", TRANSFORM)
    bad = ({"id": 20, "title": "refused"}, {"id": 23, "title": "refused"})
    told.load(*({"id": number, "title": f"{number}"} for number in range(12)), *bad)
    return told


def go_on(told: Told) -> None:
    """Load two changesets more. One of the rows that were refused is good by now."""
    told.load(*({"id": number, "title": "new"} for number in range(8, 20)), {"id": 21, "title": None})
    changes = ((0, "gone"), (1, "hidden"), (2, "last"), (23, "better"))
    told.load(*({"id": number, "title": title} for number, title in changes))


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_running: None) -> Told:
    """A table with changes that nobody has been told of; this process sends them."""
    told = started(tmp_path / "project", monkeypatch)
    go_on(told)
    return told


@pytest.fixture
def joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_running: None) -> Told:
    """A table with items, of which one changeset was delivered, and all has changed since; Spark sends."""
    return with_items(tmp_path / "project", monkeypatch)


def with_items(path: Path, patch: pytest.MonkeyPatch) -> Told:
    told = started(path, patch, enrich=ITEMS, batch={"rows": 15, "send": 4, "spark": 0})
    told.works.folder.document["pipelines"]["items"] = Folder.files_pipeline(
        "items/*.csv", table="shop.items", mode="upsert", key=["id"], lane="small"
    )
    told.change()
    add_items(told, dict.fromkeys(range(0, 24, 3), "old"))
    told.deliver()
    go_on(told)
    add_items(told, {3: "changed", 6: "changed", 7: "added"})
    return told


def add_items(told: Told, names: Mapping[int, str]) -> None:
    """Let works have an item each."""
    items = [{"id": number, "work_id": number, "name": name} for number, name in names.items()]
    told.works.project.load("items", items)


def wanted(told: Told, more: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the documents that must be in the index."""
    titles = {str(number): f"{number}" for number in range(2, 8)}
    titles |= {str(number): "new" for number in range(8, 20)} | {"2": "last", "23": "better"} | (more or {})
    items: dict[str, list[str]] = {}
    if "items" in told.works.project.project.pipelines:
        found = told.works.read("lake.shop.items")
        items = {str(item["work_id"]): [item["name"]] for item in found}
    return {id_: {"title": title, "items": items.get(id_, [])} for id_, title in titles.items()}


def waiting(project: OpenProject) -> dict[str, str]:
    """Return where rows failed that are dead letters, by id."""
    letters = DeadLetters(project.engine, TableId("lake", "shop.search__dead")).waiting().letters
    return {id_: letter.stage for id_, letter in letters.items()}


def events(told: Told) -> list[tuple[str, str, int | None]]:
    """Return all that was written down of dead letters."""
    return sorted((each["id"], each["status"], each["changeset"]) for each in told.letters())


def run_to(folder: Path, point: str, count: int, act: str) -> int:
    """Deliver in a session of its own; return how it ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.scenarios.killed_delivery", str(folder), point, str(count), act],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output, _ = process.communicate(timeout=300)
    wait_for_end(process.pid)
    assert process.returncode in (0, -signal.SIGKILL), output.decode()
    return process.returncode


def kill_at(works: Works, point: str, count: int, act: str) -> None:
    """Deliver in a process that dies at a point, and open the project anew."""
    assert run_to(works.folder.path, point, count, act) == -signal.SIGKILL, "it never came there"
    works.project = works.folder.open()


def check_goes_on(told: Told, expected: dict[str, str]) -> None:
    """See that the next changes arrive, and that a row which is mended is a dead letter no more."""
    told.load({"id": 5, "title": "after"}, {"id": 20, "title": "mended"})
    told.deliver()
    assert told.shelf.documents() == wanted(told, expected | {"5": "after", "20": "mended"})
    assert waiting(told.works.project) == {"21": "transform"}


@points(
    [(Point.LOT, 3)],
    [
        (DeliveryStep.STORED, 1),
        (DeliveryStep.TAGGED, 2),
        *((Point.LOT, count) for count in (1, 4, 5, 7, 8)),
        *((DeliveryStep.SENT, count) for count in (1, 2, 3)),
        *((point, count) for point in (Point.BEFORE_SWAP, Point.AFTER_SWAP) for count in range(1, 7)),
    ],
)
def test_a_delivery_that_is_killed(told: Told, point: str, count: int) -> None:
    """The next one goes on: every document is right by its content, and every letter is there once."""
    kill_at(told.works, point, count, "deliver")
    told.deliver()
    assert told.shelf.documents() == wanted(told)
    assert waiting(told.works.project) == BAD
    letters = [("20", "dead", 1), ("21", "dead", 2), ("23", "dead", 1), ("23", "resolved", None)]
    assert events(told) == letters
    assert told.deliver().changesets == 0
    check_goes_on(told, {})


@points(
    [],
    [
        *((Point.LOT, count) for count in range(1, 7)),
        *((DeliveryStep.SENT, count) for count in (1, 2, 3)),
        *((point, count) for point in (Point.BEFORE_SWAP, Point.AFTER_SWAP) for count in range(1, 6)),
    ],
)
def test_a_delivery_by_spark_that_is_killed(joined: Told, point: str, count: int) -> None:
    """Its Python workers die, too, while they send rows, or only what belongs to rows."""
    kill_at(joined.works, point, count, "deliver")
    add_items(joined, {9: "later"})
    joined.deliver()
    assert joined.shelf.documents() == wanted(joined)
    assert waiting(joined.works.project) == BAD
    letters = [("20", "dead", 1), ("21", "dead", 2), ("23", "dead", 1), ("23", "resolved", None)]
    assert events(joined) == letters
    assert joined.deliver().rows.rows == 0
    check_goes_on(joined, {})


@points(
    [(DeliveryStep.MOVED, 1)],
    [
        (DeliveryStep.TASK_SENT, 2),
        (DeliveryStep.SWITCHED, 1),
        *((Point.LOT, count) for count in range(1, 7)),
        *((point, 1) for point in (DeliveryStep.PINNED, DeliveryStep.TASK_SENT, DeliveryStep.VERIFIED)),
        *((DeliveryStep.TASK_DONE, count) for count in (1, 2, 3)),
        *((point, 1) for point in (Point.MADE, Point.BEFORE_PLAN, Point.FORGOTTEN)),
        *((point, count) for point in (Point.BEFORE_SWAP, Point.AFTER_SWAP) for count in range(1, 6)),
    ],
)
def test_a_reindex_that_is_killed(told: Told, point: str, count: int) -> None:
    """What is published, and delivered, before it goes on is in the new index all the same."""
    told.deliver()
    kill_at(told.works, point, count, "reindex")
    told.load({"id": 3, "title": "meanwhile"}, {"id": 4, "title": "gone"})
    told.deliver()
    meanwhile = {"3": "meanwhile"}
    expected = wanted(told, meanwhile)
    del expected["4"]
    assert told.shelf.documents() == expected
    assert waiting(told.works.project) == BAD
    told.reindex()
    told.deliver()
    assert told.shelf.alias != "first"
    assert told.shelf.documents() == expected
    assert waiting(told.works.project) == BAD
    assert no_letter_stands_twice(told)
    told.load({"id": 4, "title": "4"})
    check_goes_on(told, meanwhile)


@points(
    [(DeliveryStep.SWITCHED, 1)],
    [
        (DeliveryStep.SENT, 1),
        *((Point.LOT, count) for count in (6, 7)),
        *((point, 1) for point in (DeliveryStep.MOVED, DeliveryStep.STORED, Point.FORGOTTEN)),
        *((point, count) for point in (Point.BEFORE_SWAP, Point.AFTER_SWAP) for count in range(1, 6)),
    ],
)
def test_a_reindex_that_is_killed_as_it_catches_up(told: Told, point: str, count: int) -> None:
    """What was published since its snapshot is in the new index before anybody looks there."""
    told.deliver()
    told.works.project.reindex_plan("search")
    told.load({"id": 3, "title": "meanwhile"}, {"id": 4, "title": "gone"}, {"id": 23, "title": "refused"})
    told.deliver()
    kill_at(told.works, point, count, "reindex")
    told.load({"id": 6, "title": "gone"}, {"id": 23, "title": "better"})
    told.deliver()
    meanwhile = {"3": "meanwhile"}
    expected = wanted(told, meanwhile)
    del expected["4"], expected["6"]
    assert told.shelf.documents() == expected
    # Letters since a reindex began may be of the new index: they wait for its end.
    is_ended = told.shelf.alias != "first"
    assert waiting(told.works.project) == (BAD if is_ended else BAD | {"23": "target"})
    told.reindex()
    assert told.shelf.alias != "first"
    assert told.shelf.documents() == expected
    assert waiting(told.works.project) == BAD
    assert no_letter_stands_twice(told)
    told.load({"id": 4, "title": "4"}, {"id": 6, "title": "6"})
    check_goes_on(told, meanwhile)


def no_letter_stands_twice(told: Told) -> bool:
    dead = [(each["id"], each["event"]) for each in told.letters() if each["status"] == "dead"]
    return len(set(dead)) == len(dead)


@points([], [*((Point.LOT, count) for count in (1, 3, 5)), (DeliveryStep.TASK_SENT, 1)])
def test_a_reindex_with_items_that_is_killed(joined: Told, point: str, count: int) -> None:
    """Also where nothing was delivered of what changed last."""
    kill_at(joined.works, point, count, "reindex")
    add_items(joined, {9: "later"})
    joined.reindex()
    joined.deliver()
    assert joined.shelf.alias != "first"
    assert joined.shelf.documents() == wanted(joined)
    assert waiting(joined.works.project) == BAD
    check_goes_on(joined, {})


@points(
    [(Point.BEFORE_PLAN, 1)],
    [
        (Point.BEFORE_SWAP, 1),
        (Point.AFTER_SWAP, 1),
        (Point.AFTER_SWAP, 2),
        (Point.MADE, 1),
    ],
)
def test_a_first_reindex_that_is_killed_as_it_begins(told: Told, point: str, count: int) -> None:
    """Nothing was sent yet, and nobody takes it for told."""
    told.change(start="reindex")
    kill_at(told.works, point, count, "reindex")
    with pytest.raises(ReindexNeeded):
        told.deliver()
    told.change(start="beginning")
    told.deliver()
    assert told.shelf.documents() == wanted(told)
    assert waiting(told.works.project) == BAD
    for table in (WORKS, CHANGES):
        assert not any(name.startswith("esker-reindex") for name in refs(told, table))
    told.reindex()
    assert told.shelf.alias != "first"
    assert told.shelf.documents() == wanted(told)
    assert waiting(told.works.project) == BAD
    check_goes_on(told, {})


@points([], [(Point.LOT, 1), (Point.BEFORE_SWAP, 1), (Point.AFTER_SWAP, 1)])
def test_letters_whose_retry_is_killed(told: Told, point: str, count: int) -> None:
    """They wait until somebody has written down that they arrived; what changed since is not undone."""
    told.deliver()
    told.load(*({"id": number, "title": "refused"} for number in range(14, 18)))
    told.deliver()
    assert len(waiting(told.works.project)) == 6
    told.works.folder.write("transforms/works.py", MENDED)
    kill_at(told.works, point, count, "retry")
    told.load({"id": 14, "title": "gone"}, {"id": 15, "title": "newer"})
    told.deliver()
    result = told.deliver(retry_dead=True)
    assert (result.dead, waiting(told.works.project)) == (0, {})
    expected = {"15": "newer", "20": "taken", "21": "untitled"} | dict.fromkeys(("16", "17"), "taken")
    documents = wanted(told, expected)
    del documents["14"]
    assert told.shelf.documents() == documents
    assert told.deliver(retry_dead=True).rows.rows == 0


@pytest.mark.parametrize("act", ["deliver", pytest.param("reindex", marks=pytest.mark.soak)])
def test_only_the_process_that_sends_is_killed(
    joined: Told, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    """On one machine Spark repeats nothing: an error is told, and the next one goes on."""
    cloudpickle.register_pickle_by_value(mortal)  # type: ignore[no-untyped-call]
    lots = joined.works.folder.path / "lots"
    with monkeypatch.context() as patch:
        use(patch, Mortal(joined.shelf, lots, 2, None))
        with pytest.raises(EskerError, match="cannot"):
            joined.deliver() if act == "deliver" else joined.reindex()
    if act == "reindex":
        joined.reindex()
    joined.deliver()
    assert joined.shelf.documents() == wanted(joined)
    assert waiting(joined.works.project) == BAD
    check_goes_on(joined, {})


def test_nobody_sends_for_a_driver_that_is_gone(joined: Told) -> None:
    """Spark's workers may live on, and somebody else delivers at once: an old message must not come last."""
    joined.change(batch={"rows": 15, "send": 1, "spark": 0})
    kill_at(joined.works, Point.DRIVER, 2, "deliver")
    sent = (joined.works.folder.path / "lots").stat().st_size
    assert sent in (2, 3), "the other task may have had one in its hands"
    joined.deliver()
    assert joined.shelf.documents() == wanted(joined)
    assert waiting(joined.works.project) == BAD


@pytest.mark.server
@pytest.mark.soak
@pytest.mark.parametrize("act", ["deliver", "reindex"])
def test_a_cluster_repeats_what_a_process_did_that_was_killed(
    joined: Told, spark_cluster: SparkCluster, act: str
) -> None:
    """The lots that had arrived come again; nothing is counted, or a dead letter, twice."""
    # The target is of these tests.
    conf = {**ON_CLUSTER, "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[2])}
    on_cluster = {"master": spark_cluster.master, "driver_memory": "1g", "conf": conf}
    joined.works.folder.document["spark"] = on_cluster
    joined.works.folder.save()
    assert run_to(joined.works.folder.path, Point.WORKER, 2, act) == 0
    joined.works.folder.document["spark"] = CHILD_SPARK
    joined.change()
    if act == "reindex":
        assert joined.shelf.alias != "first"
        joined.deliver()
    assert joined.deliver().rows.rows == 0
    assert joined.shelf.documents() == wanted(joined)
    assert waiting(joined.works.project) == BAD
    assert no_letter_stands_twice(joined)
    check_goes_on(joined, {})


@pytest.mark.server
@pytest.mark.parametrize("act", [pytest.param("deliver", marks=pytest.mark.soak), "reindex"])
def test_a_search_index_whose_writer_is_killed(
    tmp_path: Path, opensearch: SearchServer, spark_running: None, act: str
) -> None:
    """A real server, which forgets deletes: its documents are those of the table, behind one alias."""
    keys = {"batch": {"rows": 25, "send": 4, "spark": 0}, "reindex": {"rows": 25}}
    works = museum(tmp_path, opensearch, **keys)
    works.folder.document["spark"] = CHILD_SPARK
    works.folder.document["consumers"]["search"]["to"]["settings"] = {"gc_deletes": "0s"}
    works.folder.save()
    works.project = works.folder.open()
    alias = index_of(works.project)
    works.load([*(work(number) for number in range(20)), work(30, "bad", "unknown")])
    works.project.deliver("search")
    works.load([*(work(number, "new") for number in range(10, 24)), work(31, "bad", "unknown")])
    works.load([work(0, "gone"), work(1, "hidden"), work(2, "last"), work(30, "good")])
    works.project.load("items", [{"id": 3, "work_id": 5, "name": "moved"}])
    before = opensearch.behind(alias)

    kill_at(works, Point.LOT, 3, act)
    assert opensearch.behind(alias) == before
    works.load([work(3, "meanwhile"), work(4, "gone")])
    works.project.deliver("search")
    check(works, opensearch, without=(31,))
    # While another index is filled, no letter ends.
    still = {"30": "target"} if act == "reindex" else {}
    assert waiting(works.project) == {"31": "target"} | still
    if act == "reindex":
        result = works.project.reindex("search")
        assert result.error is None
        works.project.deliver("search")
        assert opensearch.behind(alias) == [result.notes[0].removeprefix("index ")] != before
        check(works, opensearch, without=(31,))
        assert waiting(works.project) == {"31": "target"}
    works.load([work(5, "after"), work(31, "good"), work(6, "gone")])
    works.project.deliver("search")
    check(works, opensearch)
    assert waiting(works.project) == {}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(8))
def test_kills_at_random_instants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_running: None, seed: int
) -> None:
    """Loads, deliveries, retries and reindexes, most of them killed; in the end all is as in the table."""
    generator = random.Random(seed)
    told = with_items(tmp_path / "project", monkeypatch)
    told.change(batch={"rows": 15, "send": 4, "spark": generator.choice([0, 10_000])})
    for number in range(6):
        titles = ("gone", "hidden", "refused", None, *(f"{number} {place}" for place in range(6)))
        ids = generator.sample(range(24), generator.randint(1, 12))
        told.load(*({"id": id_, "title": generator.choice(titles)} for id_ in ids))
        if generator.random() < 0.5:
            add_items(told, dict.fromkeys(generator.sample(range(24), 3), f"item {number}"))
        act = generator.choice(["deliver", "deliver", "retry", "reindex", "reindex"])
        ended = run_to(told.works.folder.path, f"{generator.uniform(0, 8):.3f}", 1, act)
        print(f"seed {seed}, round {number}: {act} ended with {ended}")
        told.works.project = told.works.folder.open()
        if generator.random() < 0.4:
            told.deliver()
            check_against_table(told)
    told.deliver()
    check_against_table(told)
    told.reindex()
    told.deliver()
    check_against_table(told)
    assert no_letter_stands_twice(told)
    told.works.folder.write("transforms/works.py", MENDED)
    if waiting(told.works.project):
        told.deliver(retry_dead=True)
    assert waiting(told.works.project) == {}
    check_against_table(told, mended={None: "untitled", "refused": "taken"})


def check_against_table(told: Told, mended: Mapping[str | None, str] | None = None) -> None:
    """Compare documents and dead letters with the table."""
    items = {item["work_id"]: [item["name"]] for item in told.works.read("lake.shop.items")}
    rows = [row for row in told.works.read(WORKS) if not row["deleted"] and row["title"] != "hidden"]
    titles = {row["id"]: (mended or {}).get(row["title"], row["title"]) for row in rows}
    bad = {str(id_): title for id_, title in titles.items() if title in (None, "refused")}
    good = {
        str(id_): {"title": title, "items": items.get(id_, [])}
        for id_, title in titles.items()
        if str(id_) not in bad
    }
    documents = told.shelf.documents()
    # What was delivered of a row before it turned bad may stand there still.
    assert {id_: document for id_, document in documents.items() if id_ not in bad} == good
    found, project = waiting(told.works.project), told.works.project
    if find_plan(project.state, project.project.state_key, "search") is not None:
        assert found.keys() >= bad.keys()  # while another index is filled, no letter ends
    else:
        assert found == {id_: "transform" if title is None else "target" for id_, title in bad.items()}
