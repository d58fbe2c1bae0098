"""Small steps are delivered without Spark and Java: the same messages, from the same offset, as with them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from esker.ledger.offsets import stored_offset
from esker.pipeline.reading import ReadingProject
from tests.cli.terminal import environment
from tests.deliver.told import Tell, Told
from tests.folder import Folder
from tests.load.works import Works
from tests.without_spark import TAKEN_AWAY, WITHOUT_JAVA

pytestmark = [pytest.mark.spark, pytest.mark.process]

COMMAND = TAKEN_AWAY + "from esker.cli.main import main; main()"
IMPORTS = (
    TAKEN_AWAY
    + """
import json, esker
project = esker.open(".")
results = [project.deliver(name).as_json() for name in sys.argv[1:]]
heavy = {name.partition(".")[0] for name in sys.modules} & {"pyspark", "py4j", "duckdb"}
print(json.dumps([results, sorted(heavy)]))
"""
)
LOG, DEAD = "lake.shop.works__changes", "lake.shop.one__dead"


def run(program: str, *arguments: str, folder: Path, status: int = 0) -> Any:
    """Run a program where there is no Java to start, and return the JSON that it prints."""
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=environment(WITHOUT_JAVA),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    return json.loads(ended.stdout)


def works(path: Path, *, pipeline: dict[str, Any] | None = None, **consumer: Any) -> Works:
    """A table, and a consumer that writes files."""
    one = {"from": "works", "to": {"type": "files", "path": "out"}, **consumer}
    made = Works(path, project={"consumers": {"one": one}}, **{"lane": "small", **(pipeline or {})})
    made.folder.write(
        "transforms/works.py",
        "import esker\n@esker.transform\ndef to_work(row):\n"
        "    return {'id': row['id'], 'title': row['title'].strip()}\n",
    )
    return made


def messages(path: Path) -> list[tuple[str, str, int]]:
    """Return id, operation and changeset of all messages."""
    lines = [line for file in (path / "out").rglob("*.jsonl") for line in file.read_text().splitlines()]
    return sorted((each["id"], each["op"], each["changeset"]) for each in map(json.loads, lines))


def test_a_consumer_without_spark(tmp_path: Path, spark_running: None) -> None:
    """From its first message on: changes, dead letters and tags are as Spark leaves them."""
    here = works(tmp_path, transform="transforms/works.py:to_work")
    here.load([{"id": 1, "title": "a"}, {"id": 2, "title": None}, {"id": 3, "title": "c"}])
    [[first], modules] = run(IMPORTS, "one", folder=tmp_path)
    assert modules == []
    assert (first["since"], first["until"], first["rows"]["sent"], first["dead"]) == (0, 1, 2, 1)
    assert messages(tmp_path) == [("1", "insert", 1), ("3", "insert", 1)]
    tags = {row["name"]: row["snapshot_id"] for row in here.sql(f"SELECT * FROM {LOG}.refs")}
    assert tags["esker-consumer-shop-one"] == tags["main"]
    assert "esker-start-shop-one" not in tags
    [letter] = here.read(DEAD)
    assert (letter["id"], letter["status"], letter["stage"], letter["changeset"]) == (
        "2",
        "dead",
        "transform",
        1,
    )

    here.load([{"id": 1, "title": "A"}, {"id": 2, "title": "b"}])
    document = run(COMMAND, "deliver", "--json", folder=tmp_path)["consumers"][0]
    assert (document["since"], document["until"], document["dead"]) == (
        1,
        2,
        0 if not document["dead"] else 1,
    )
    here.load([{"id": 4, "title": "d"}])
    result = here.project.deliver("one")  # with Spark, which runs here
    assert (result.since, result.until, result.rows.sent) == (2, 3, 1)
    run(COMMAND, "deliver", "--json", folder=tmp_path)
    assert messages(tmp_path)[-1] == ("4", "insert", 3)


def test_large_steps_are_left_to_a_runner_with_spark(tmp_path: Path, spark_running: None) -> None:
    """A small runner with another one that has Spark reports the large step, and sends none of it."""
    here = works(tmp_path, batch={"spark": 2})
    here.load([{"id": number, "title": "a"} for number in range(3)])
    program = TAKEN_AWAY + "from esker.cli.submitted import main; main()"
    given = ("--esker-project", str(tmp_path), "--esker-do", "deliver", "--esker-consumer", "one")
    document = run(program, *given, "--esker-large", "elsewhere", folder=tmp_path, status=2)
    assert (document["needs_spark"], document["retry"]) == (True, False)
    assert "more than batch: {spark: 2}" in document["consumers"][0]["error"]["reason"]
    assert messages(tmp_path) == []
    document = run(program, *given, folder=tmp_path)
    assert (document["needs_spark"], document["consumers"][0]["rows"]["sent"]) == (False, 3)
    here.load([{"id": 1, "title": "b"}])
    document = run(program, *given, "--esker-large", "elsewhere", folder=tmp_path)
    assert document["consumers"][0]["rows"]["sent"] == 1


def test_no_spark_is_started_where_it_is_installed(tell: Tell) -> None:
    """A small step starts none; a large one does."""
    told: Told = tell(batch={"spark": 2})
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "b"})
    told.load({"id": 1, "title": "c"})
    fresh = ReadingProject.at(told.works.folder.path)
    result = fresh.deliver("search")
    assert (result.since, result.until, result.rows.sent) == (0, 2, 2), "one step of three changes"
    assert fresh._is_started, "it has more changes than batch: {spark: 2}"
    told.load({"id": 1, "title": "d"})
    fresh = ReadingProject.at(told.works.folder.path)
    assert fresh.deliver("search").rows.sent == 1
    assert not fresh._is_started
    assert told.titles() == {"1": "d", "2": "b"}
    offset = stored_offset(fresh.state, "shop", "search")
    assert offset is not None
    assert offset.run == told.works.log()[-1]["_esker_run"]


@pytest.mark.parametrize(
    ("keys", "arguments", "reason"),
    [
        ({"transform": "SELECT id FROM input"}, (), "Its transform is a SELECT"),
        ({"enrich": {"o": {"table": "shop.works", "on": {"id": "id"}}}}, (), "Enrich: joins rows"),
        ({}, ("--retry-dead",), "Dead letters, ids and reindexes read rows"),
    ],
)
def test_what_needs_spark_says_what_to_install(
    tmp_path: Path, spark_running: None, keys: dict[str, Any], arguments: tuple[str, ...], reason: str
) -> None:
    """Nothing was sent, and the error names the extra."""
    here = works(tmp_path, **keys)
    here.load([{"id": 1, "title": "a"}])
    document = run(COMMAND, "deliver", "one", *arguments, "--json", folder=tmp_path, status=2)
    [result] = document["consumers"]
    assert result["error"]["code"] == "ESK-ENGINE-022"
    assert result["error"]["reason"].startswith(reason)
    assert result["error"]["remedy"] == "pip install 'esker[spark]'"
    assert messages(tmp_path) == []


def test_rows_that_are_appended(tmp_path: Path, spark_running: None) -> None:
    """Of a table without a key, the rows of each snapshot come in order, also those of other engines."""
    here = works(tmp_path, id=["id"])
    columns = {"id": "bigint", "title": "string"}
    pipeline = Folder.files_pipeline(table="shop.works", mode="append", columns=columns)
    here.folder.document["pipelines"]["works"] = pipeline
    here.folder.save()
    here.project = here.folder.open()
    here.load([{"id": 1, "title": "a"}])
    run(COMMAND, "deliver", "--json", folder=tmp_path)
    here.load([{"id": 2, "title": "b"}])
    here.sql("INSERT INTO lake.shop.works (id, title) VALUES (3, 'c')")
    [[result], _] = run(IMPORTS, "one", folder=tmp_path)
    assert (result["changesets"], result["rows"]["sent"]) == (2, 2)
    assert messages(tmp_path) == [("1", "insert", 1), ("2", "insert", 2), ("3", "insert", 3)]
    assert here.project.deliver("one").rows.rows == 0, "Spark finds nothing left"
    here.sql("DELETE FROM lake.shop.works WHERE id = 3")
    document = run(COMMAND, "deliver", "--json", folder=tmp_path, status=1)
    assert document["consumers"][0]["error"]["code"] == "ESK-DELIVER-040"


def test_tasks_of_a_reindex(tmp_path: Path, spark_running: None) -> None:
    """A task begun with Spark is done without it, deletes left out; the reindex is ended with Spark."""
    keys = {"delete_when": "title = 'gone'"}
    here = works(tmp_path, pipeline=keys, reindex={"rows": 1})
    here.load([{"id": 1, "title": "a"}, {"id": 2, "title": "b"}])
    here.load([{"id": 3, "title": "c"}])
    here.load([{"id": 2, "title": "gone"}])
    plan = here.project.reindex_plan("one")
    for task in plan.tasks:
        document = run(COMMAND, "reindex", "one", "--task", str(task.number), "--json", folder=tmp_path)
        assert document["status"] == "succeeded"
    assert [(id_, number) for id_, _, number in messages(tmp_path)] == [("1", 3), ("3", 3)]
    result = here.project.reindex("one")
    assert (result.error, result.rows.sent) == (None, 2)
    # The next delivery goes on behind it, without Spark.
    here.load([{"id": 3, "title": "C"}])
    document = run(COMMAND, "deliver", "--json", folder=tmp_path)["consumers"][0]
    assert (document["since"], document["until"], document["rows"]["sent"]) == (3, 4, 1)
