"""A real Hive Metastore with a Derby database, on this machine, from PySpark's own jars."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from esker.engine.gateway import launch, stop
from esker.engine.java import find_java
from tests.servers.ports import free_port
from tests.servers.waiting import end, wait_until

_SETTINGS = {
    "hive.async.log.enabled": "false",
    "datanucleus.connectionPoolingType": "HikariCP",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
    "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
    "hive.support.concurrency": "true",
}


@contextmanager
def running_hive(folder: Path) -> Iterator[int]:
    """Start a metastore, and yield its port."""
    settings = _SETTINGS | {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'db'};create=true",
        "hive.metastore.warehouse.dir": f"file://{folder / 'warehouse'}",
    }
    conf = folder / "conf"
    conf.mkdir()
    lines = (f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items())
    (conf / "hive-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    _make_locks(conf, folder / "prepare.log")
    port = free_port()
    jars = Path(pyspark.__file__).parent / "jars"
    command = [str(find_java().home / "bin/java"), "-Xmx384m", "-XX:+UseSerialGC", "-cp", f"{conf}:{jars}/*"]
    command += ["org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        wait_until(lambda: process.poll() is not None or _answers(port), "Hive Metastore", 120)
        assert process.poll() is None, (folder / "log").read_text()
        yield port
    finally:
        end(process)


def _make_locks(conf: Path, log: Path) -> None:
    """Make the tables of locks, which the metastore itself does not make."""
    gateway = launch({"spark.driver.extraClassPath": str(conf)}, log)
    try:
        hive = gateway.jvm.org.apache.hadoop.hive
        hive.metastore.txn.TxnDbUtil.prepDb(hive.conf.HiveConf())
    finally:
        stop(gateway)


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
