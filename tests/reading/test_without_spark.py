"""Where PySpark and Java are not, a project opens all the same, and tables and changes can be read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from esker.ledger.change_log import CHANGESET, OP
from tests.cli.terminal import environment
from tests.load.works import Make, Works
from tests.without_spark import TAKEN_AWAY, WITHOUT_JAVA

pytestmark = [pytest.mark.spark, pytest.mark.process]

READ = (
    TAKEN_AWAY
    + """
import json, esker
from esker.errors import SparkNotInstalled

project = esker.open(sys.argv[1])
changes = project.changes("shop.works", since=1)
tasks = project.reindex_tasks("shop.works", size=1)
refused = []
asked = lambda: project.run("works"), changes.to_spark, tasks[0].to_spark, lambda: project.engine
for ask in asked:
    try:
        ask()
    except SparkNotInstalled as error:
        refused.append(error.message)
print(json.dumps({
    "since": changes.since,
    "until": changes.until,
    "changes": changes.to_arrow().to_pylist(),
    "polars": changes.to_polars().height,
    "rows": [row for task in tasks for row in task.to_arrow().to_pylist()],
    "refused": refused,
    "modules": sorted({name.partition(".")[0] for name in sys.modules} & {"pyspark", "py4j"}),
}, default=str))
"""
)
ASK = TAKEN_AWAY + "from esker.cli.main import main; main()"


def run(program: str, *arguments: str, folder: Path) -> Any:
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=environment(WITHOUT_JAVA),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture
def works(make: Make) -> Works:
    works = make(lane="small", format_version=3, order_by="at", partition_by=["bucket(2, id)"])
    works.load([{"id": number, "at": 1, "title": "a", "deleted": False} for number in range(6)])
    works.load([{"id": 0, "at": 2, "title": "b", "deleted": False}, {"id": 1, "at": 2, "deleted": True}])
    works.load([{"id": 9, "at": 3, "title": "c", "more": "x", "deleted": False}])
    return works


def test_a_project_without_spark(works: Works) -> None:
    """What is read there is what Spark reads here; what needs Spark says so."""
    found = run(READ, str(works.folder.path), folder=works.folder.path)
    log = [row for row in works.log() if row[CHANGESET] > 1]
    assert (found["since"], found["until"]) == (1, 3)
    assert [(row[CHANGESET], row[OP], row["id"], row["title"], row["more"]) for row in found["changes"]] == [
        (row[CHANGESET], row[OP], row["id"], row["title"], row["more"]) for row in log
    ]
    assert found["polars"] == len(log)
    live = [row for row in works.rows().values() if not row["deleted"]]
    assert sorted((row["id"], row["at"], row["title"]) for row in found["rows"]) == sorted(
        (row["id"], row["at"], row["title"]) for row in live
    )
    assert found["refused"] == [
        "project.run needs PySpark",
        "to_spark needs PySpark",
        "to_spark needs PySpark",
        "project.engine needs PySpark",
    ]
    assert found["modules"] == []


def test_the_command_needs_no_spark(works: Works) -> None:
    """`esker changes` prints what it prints with Spark, and starts none."""
    found = run(ASK, "changes", "shop.works", "--since", "1", "--json", folder=works.folder.path)
    expected = works.project.read_changes("shop.works", since=1).as_json()
    assert found == json.loads(json.dumps(expected, default=lambda value: value.isoformat()))


def test_spark_prints_changes_where_pyiceberg_is_not_installed(works: Works) -> None:
    """The extra `read` is not needed where Spark is."""
    away = TAKEN_AWAY.replace('("pyspark", "py4j", "duckdb")', '("pyiceberg",)')
    assert away != TAKEN_AWAY
    program = away + "from esker.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", program, "changes", "shop.works", "--since", "1", "--json"],
        cwd=works.folder.path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    expected = works.project.read_changes("shop.works", since=1).as_json()
    assert json.loads(ended.stdout) == json.loads(
        json.dumps(expected, default=lambda value: value.isoformat())
    )


@pytest.mark.server
def test_a_table_in_a_store(seaweedfs: Any, make: Make) -> None:
    """The same with a REST catalog and files in a bucket."""
    catalog = seaweedfs.catalog(seaweedfs.new_warehouse())
    works = make(project={"catalog": catalog, "store": seaweedfs.store()}, lane="small")
    works.load([{"id": 1, "at": 1, "title": "a", "more": None, "deleted": False}])
    works.load([{"id": 1, "at": 1, "title": "b", "more": None, "deleted": False}])
    found = run(READ, str(works.folder.path), folder=works.folder.path)
    assert [(row["id"], row["title"], row[OP]) for row in found["changes"]] == [(1, "b", "update")]
    assert [(row["id"], row["title"]) for row in found["rows"]] == [(1, "b")]
