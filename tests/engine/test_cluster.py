"""Work on a cluster is done by its executors; a cluster that is not there is reported at once."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from socket import create_server
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from esker.engine.cluster import check_cluster
from esker.errors import ClusterUnreachable
from tests.command import esker
from tests.folder import SPARK, Folder
from tests.servers.ports import free_port
from tests.servers.spark_cluster import ON_CLUSTER, WORKERS, SparkCluster
from tests.servers.waiting import wait_until

TRANSFORM = """
import esker
from shapes.names import named

@esker.transform
def to_work(row):
    return {"name": named(row)}
"""
NAMES = """
import os

def named(row):
    return f"{row['id']} of {row['day']}, in {os.environ.get('TZ')}"
"""
ZONE = "Pacific/Auckland"
"""Where the workers are."""


@pytest.mark.process
@pytest.mark.server
def test_executors_write_the_files(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    """Every data file was written by a task that ran in an executor, and every row is right. Bad rows come
    from there to the quarantine.

    The workers' clock shows another time zone: dates and times must not depend on it. Executors also tell
    consumers what was loaded, with code of the project that is not theirs.
    """
    spark = {
        "master": spark_cluster.master,
        "driver_memory": "1g",
        "conf": {**ON_CLUSTER, "spark.app.name": "esker on a cluster"},
    }
    columns = {"id": "bigint", "day": "date", "at": "timestamp"}
    news = {"from": "sales", "id": ["id"], "transform": "transforms/works.py:to_work", "batch": {"spark": 0}}
    folder = Folder(
        tmp_path / "project",
        spark=spark,
        pipelines={"sales": Folder.files_pipeline(columns=columns, bad_rows="quarantine")},
        consumers={"news": {**news, "to": {"type": "files", "path": "told"}}},
    )
    folder.write("transforms/works.py", TRANSFORM)
    folder.write("shapes/names.py", NAMES)
    expected = []
    for file in range(4):
        rows = [(file * 100 + n, f"2026-01-{n + 1:02}", f"2026-07-{n + 1:02} 23:30:00") for n in range(25)]
        bad = [(f"bad {file}", "2026-01-01", "2026-07-01 23:30:00")]
        folder.write_csv(f"landing/{file}.csv", list(columns), [*rows[:9], *bad, *rows[9:]])
        expected += rows

    answer = esker(folder.path, "run", "--json")
    assert answer.status == 0, answer.stdout + answer.stderr
    counts = answer.document["pipelines"][0]["rows"]
    assert (counts["read"], counts["inserted"], counts["quarantined"]) == (104, 100, 4)

    place = folder.path / ".esker"
    address = f"sqlite:///{place}/catalog.db"
    with closing(load_catalog("lake", type="sql", uri=address, warehouse=f"{place}/warehouse")) as catalog:
        table = catalog.load_table("shop.sales")
        quarantine = catalog.load_table("shop.sales__quarantine").scan().to_arrow().to_pylist()
    assert sorted(json.loads(row["payload"])["id"] for row in quarantine) == [f"bad {n}" for n in range(4)]
    assert {row["reason"] for row in quarantine} == {f'column "id": "bad {n}" is no bigint' for n in range(4)}
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], str(row["day"]), f"{row['at']:%Y-%m-%d %H:%M:%S}") for row in found] == expected

    def ended() -> list[dict[str, Any]]:
        return [
            each for each in spark_cluster.status()["completedapps"] if each["name"] == "esker on a cluster"
        ]

    wait_until(lambda: bool(ended()), "the end of the application, of which the master hears later")
    [application] = ended()
    logs = spark_cluster.executor_logs(application["id"])
    assert len(logs) == WORKERS
    assert len({name.split("/")[0] for name in logs}) == WORKERS, "one executor per worker"
    # Iceberg puts the task's id into a data file's name, second; executors log the ids of their tasks.
    ran = {int(task) for log in logs.values() for task in re.findall(r"Finished task .*\(TID (\d+)\)", log)}
    names = [Path(file["file_path"]).name for file in table.inspect.data_files().to_pylist()]
    assert names
    assert {int(name.split("-")[1]) for name in names} <= ran

    answer = esker(folder.path, "deliver", "--json")
    assert answer.status == 0, answer.stdout + answer.stderr
    lines = [line for file in (folder.path / "told").iterdir() for line in file.read_text().splitlines()]
    told = {json.loads(line)["body"]["name"] for line in lines}
    assert len(lines) == 100
    assert told == {f"{number} of {day}, in {ZONE}" for number, day, _ in expected}


@pytest.mark.process
def test_a_dead_master_is_reported_at_once(tmp_path: Path) -> None:
    """A run on a cluster that nobody answers for ends with status 4, long before Spark would give up."""
    master = f"spark://127.0.0.1:{free_port()}"
    folder = Folder(tmp_path / "project", spark={**SPARK, "master": master})
    folder.write_csv("landing/a.csv", ["id"], [[1]])
    started = time.monotonic()
    answer = esker(folder.path, "run", "--json")
    assert time.monotonic() - started < 50, "Spark itself needs 60 seconds to notice"
    assert answer.status == 4, answer.stdout + answer.stderr
    assert answer.error["code"] == ClusterUnreachable.code
    assert master in answer.error["message"]
    assert "refused" in answer.error["reason"]
    assert "master" in answer.error["remedy"]


@pytest.fixture
def silent_server() -> Iterator[int]:
    """The port of a server that accepts connections and never says a word."""
    with create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.soak
@pytest.mark.process
def test_a_master_that_never_registers_is_reported(silent_server: int, tmp_path: Path) -> None:
    """Something else listens at the master's address: Spark gives up after a minute, and the run says so."""
    folder = Folder(tmp_path / "p", spark={**SPARK, "master": f"spark://127.0.0.1:{silent_server}"})
    folder.write_csv("landing/a.csv", ["id"], [[1]])
    answer = esker(folder.path, "run", "--json")
    assert answer.status == 4, answer.stdout + answer.stderr
    assert answer.error["code"] == ClusterUnreachable.code


def test_one_of_several_masters_is_enough(silent_server: int) -> None:
    """A standby master may be down."""
    check_cluster(f"spark://127.0.0.1:{free_port()},127.0.0.1:{silent_server}")


@pytest.mark.parametrize("master", ["local[2]", "yarn", "k8s://https://nowhere.invalid:443"])
def test_other_masters_are_left_to_spark(master: str) -> None:
    """Only a standalone cluster has an address that a plain connection can try."""
    check_cluster(master)


@pytest.mark.parametrize(
    ("master", "why"),
    [("spark://nowhere.invalid:7077", "nowhere.invalid:7077: "), ("spark://host", "write host:port")],
)
def test_an_address_that_cannot_be_right_is_named(master: str, why: str) -> None:
    """A wrong name or a missing port is told apart from a server that is down."""
    with pytest.raises(ClusterUnreachable) as caught:
        check_cluster(master)
    assert why in caught.value.reason
