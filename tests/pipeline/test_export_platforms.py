"""Pipelines run where they are exported to; what is written for AWS is what AWS takes, and no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyspark
import pytest
from pyiceberg.catalog import load_catalog

from esker.pipeline.export import export_platform
from esker.project import load_project
from tests.folder import SPARK, Folder
from tests.servers.spark_cluster import WORKERS, SparkCluster


def write(files: dict[str, str | bytes], folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


@pytest.mark.process
@pytest.mark.server
def test_spark_submit_runs_the_pipeline(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    """The exported script loads every row through the executors, once; its exit status is Esker's."""
    quick = SPARK["conf"]["spark.driver.extraJavaOptions"]
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": quick,
        "spark.executor.extraJavaOptions": quick,
        "spark.executor.memory": "512m",
        "spark.executor.cores": 1,
        "spark.cores.max": WORKERS,
        "spark.sql.shuffle.partitions": 2,
    }
    folder = Folder(tmp_path / "project", spark={"driver_memory": "1g", "conf": conf})
    for file in range(2):
        folder.write_csv(
            f"landing/{file}.csv", ["id", "day"], [[file * 10 + n, "2026-01-02"] for n in range(10)]
        )
    bundle = export_platform(load_project(folder.path), "spark-submit", ["sales"])
    place = write(bundle.files, tmp_path / "exported")
    environment = os.environ | {
        "ESKER_PYTHON": sys.executable,
        "SPARK_SUBMIT": str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        "SPARK_MASTER": spark_cluster.master,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }

    def submit(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", str(place / "submit.sh"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    answer = submit()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    document = json.loads(answer.stdout.strip().splitlines()[-1])
    assert document["exit_status"] == 0
    assert document["pipelines"][0]["rows"]["inserted"] == 20

    own = folder.path / ".esker"
    address = f"sqlite:///{own}/catalog.db"
    with closing(load_catalog("lake", type="sql", uri=address, warehouse=f"{own}/warehouse")) as catalog:
        rows = catalog.load_table("shop.sales").scan().to_arrow().to_pylist()
    assert sorted(row["id"] for row in rows) == list(range(20))
    [application] = [each for each in spark_cluster.status()["completedapps"] if each["name"] == "esker-shop"]
    logs = spark_cluster.executor_logs(application["id"])
    assert any("Finished task" in log for log in logs.values()), "executors did the work"

    refused = submit("--esker-pipelines", "nothing")
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert json.loads(refused.stdout.strip().splitlines()[-1])["error"]["code"] == "ESK-PROJECT-005"
