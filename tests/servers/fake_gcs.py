"""fake-gcs-server, an emulator of Google Cloud Storage, on 127.0.0.1."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyarrow import fs

from tests.needs import found, missing
from tests.servers.ports import free_port
from tests.servers.waiting import end, wait_until


@contextmanager
def running_fake_gcs(folder: Path) -> Iterator[int]:
    """Start a server that keeps its files in memory, and yield its port."""
    program = found(".cache/fake_gcs/fake-gcs-server")
    if program is None:
        missing("fake-gcs-server", "install Go and call tests/servers/install.sh soak")
    port = free_port()
    command = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    command += ["-public-host", f"127.0.0.1:{port}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until(lambda: _answers(port), "fake-gcs-server", 30)
        yield port
    finally:
        end(process)


def file_system(port: int) -> fs.FileSystem:
    """Return the emulator's files."""
    return fs.GcsFileSystem(
        anonymous=True, scheme="http", endpoint_override=f"127.0.0.1:{port}", project_id="tests"
    )


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
