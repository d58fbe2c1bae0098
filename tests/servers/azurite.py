"""Azurite, Microsoft's emulator of Azure's storage, on 127.0.0.1."""

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

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The same in every Azurite: no secret."""


@contextmanager
def running_azurite(folder: Path) -> Iterator[int]:
    """Start a server that keeps its files in a folder, and yield its port."""
    program = found(".cache/azurite/node_modules/.bin/azurite-blob")
    if program is None:
        missing("Azurite", "install Node.js and call tests/servers/install.sh soak")
    port = free_port()
    command = [program, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder)]
    command += ["--disableTelemetry", "--skipApiVersionCheck", "--silent"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until(lambda: _answers(port), "Azurite", 60)
        yield port
    finally:
        end(process)


def file_system(port: int) -> fs.FileSystem:
    """Return the emulator's files."""
    address = f"127.0.0.1:{port}"
    return fs.AzureFileSystem(
        ACCOUNT,
        account_key=KEY,
        blob_storage_authority=address,
        dfs_storage_authority=address,
        blob_storage_scheme="http",
        dfs_storage_scheme="http",
    )


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
