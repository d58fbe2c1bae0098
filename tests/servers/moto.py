"""moto's server: Glue, S3, DynamoDB and STS of AWS, on 127.0.0.1, in an environment of its own."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyarrow import fs

from tests.needs import found, missing
from tests.servers.ports import free_port
from tests.servers.waiting import end, wait_until

KEY, SECRET = "esker-moto", "opensesame-of-moto"
BUCKET = "whouse"


@contextmanager
def running_moto(folder: Path) -> Iterator[str]:
    """Start a server with one bucket, and yield its address."""
    program = found(".cache/moto/bin/moto_server")
    if program is None:
        missing("moto", "call tests/servers/install.sh")
    port = free_port()
    own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with (folder / "log").open("wb") as log:
        command = [program, "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=own)
    try:
        wait_until(lambda: _answers(port), "moto", 60)
        address = f"http://127.0.0.1:{port}"
        file_system(address).create_dir(BUCKET)
        yield address
    finally:
        end(process)


def file_system(address: str) -> fs.S3FileSystem:
    """Return the server's files."""
    return fs.S3FileSystem(
        access_key=KEY,
        secret_key=SECRET,
        endpoint_override=address,
        region="us-east-1",
        allow_bucket_creation=True,
    )


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
