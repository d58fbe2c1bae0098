"""A real Spark cluster on this machine: one master and some workers, from PySpark's own jars."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from esker.engine.java import find_java
from tests.folder import SPARK
from tests.servers.ports import free_ports
from tests.servers.waiting import end, wait_until

WORKERS = 2
_QUICK = SPARK["conf"]["spark.driver.extraJavaOptions"]
ON_CLUSTER: dict[str, Any] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": _QUICK,
    "spark.executor.extraJavaOptions": _QUICK,
    "spark.executor.memory": "512m",
    "spark.executor.cores": 1,
    "spark.cores.max": WORKERS,
    "spark.sql.shuffle.partitions": 2,
}
"""Settings of a program that runs there: one small executor on each worker."""


@dataclass(frozen=True)
class SparkCluster:
    """A running cluster."""

    port: int
    web_port: int
    folder: Path

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def status(self) -> dict[str, Any]:
        """Return what the master says of its workers and applications, or nothing while it starts."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.web_port}/json/", timeout=10) as answer:
                found: dict[str, Any] = json.load(answer)
        except (OSError, ValueError):  # nobody there yet, or a page that is not the master's own yet
            return {}
        return found

    def executor_logs(self, application: str) -> dict[str, str]:
        """Return what each executor of an application wrote, by worker and number."""
        return {
            f"{path.parts[-4]}/{path.parts[-2]}": path.read_text()
            for path in self.folder.glob(f"worker-*/{application}/*/stderr")
        }


@contextmanager
def running_cluster(folder: Path, workers: int = WORKERS, **environment: str) -> Iterator[SparkCluster]:
    """Start a cluster whose logs and work lie in a folder. The environment is that of its workers."""
    port, web_port, *worker_ports = free_ports(2 + 2 * workers)
    cluster = SparkCluster(port, web_port, folder)
    with ExitStack() as stack:
        master = ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web_port)]
        stack.enter_context(_daemon(master, folder / "master.log", {}))
        wait_until(lambda: bool(cluster.status()), "Spark's master")
        for number in range(workers):
            own_port, own_web_port = worker_ports[2 * number : 2 * number + 2]
            worker = ["worker.Worker", "--host", "127.0.0.1", "--port", str(own_port)]
            worker += ["--webui-port", str(own_web_port), "--cores", "1", "--memory", "1g"]
            worker += ["--work-dir", str(folder / f"worker-{number}"), cluster.master]
            stack.enter_context(_daemon(worker, folder / f"worker-{number}.log", environment))
        wait_until(lambda: cluster.status().get("aliveworkers") == workers, "Spark's workers")
        yield cluster


@contextmanager
def _daemon(arguments: list[str], log: Path, environment: dict[str, str]) -> Iterator[None]:
    home = Path(pyspark.__file__).parent
    with log.open("wb") as output:
        # spark-class replaces itself by Java, so the process id is Java's.
        process = subprocess.Popen(
            [home / "bin" / "spark-class", f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]],
            stdout=output,
            stderr=output,
            cwd=log.parent,
            env=os.environ
            | {
                "SPARK_HOME": str(home),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                "JAVA_HOME": str(find_java().home),
                "PYSPARK_PYTHON": sys.executable,
            }
            | environment,
        )
    try:
        yield
    finally:
        end(process)
