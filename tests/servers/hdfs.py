"""A real HDFS on 127.0.0.1, from Hadoop's own mini cluster: a name node and a data node in one process."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from esker.engine.java import find_java
from tests.needs import found, missing
from tests.servers.ports import free_port
from tests.servers.waiting import end, wait_until


@contextmanager
def running_hdfs(folder: Path) -> Iterator[str]:
    """Start a cluster, and yield its address."""
    jar = found(".cache/hadoop/hadoop-client-minicluster.jar")
    if jar is None:
        missing("HDFS", "call tests/servers/install.sh soak")
    port, ready = free_port(), folder / "ready"
    jars = Path(pyspark.__file__).parent / "jars"  # Hadoop's client, and what it needs
    command = [str(find_java().home / "bin/java"), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-cp", f"{jar}:{jars}/*", "org.apache.hadoop.test.MiniDFSClusterManager"]
    command += ["-format", "-datanodes", "1", "-nnport", str(port), "-writeDetails", str(ready)]
    command += ["-D", f"hdfs.minidfs.basedir={folder / 'data'}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        wait_until(lambda: process.poll() is not None or ready.exists(), "HDFS", 120)
        assert process.poll() is None, (folder / "log").read_text()
        yield f"hdfs://127.0.0.1:{port}"
    finally:
        end(process)
