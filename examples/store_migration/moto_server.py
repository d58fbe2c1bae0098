"""S3 and DynamoDB on this machine: moto's server, in an environment of its own.

Called as a program, it installs moto there. Without that, the first use does.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".cache/moto"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "example", "AWS_SECRET_ACCESS_KEY": "example-secret"}
_REQUIREMENTS = ROOT / "requirements/moto.txt"
_READY = ENVIRONMENT / ".ready"
"""Holds what is installed."""
_PATIENCE = 60.0


def is_installed() -> bool:
    return _READY.exists() and _READY.read_bytes() == _REQUIREMENTS.read_bytes()


def install() -> None:
    """Install moto, unless it is there. Raises CalledProcessError."""
    if is_installed():
        return
    uv = str(Path(sys.executable).with_name("uv"))
    python = str(ENVIRONMENT / "bin/python")
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, ENVIRONMENT], check=True)
    subprocess.run(
        [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", _REQUIREMENTS],
        check=True,
    )
    _READY.write_bytes(_REQUIREMENTS.read_bytes())


@contextmanager
def running() -> Iterator[str]:
    """Start a server without any data; yield its address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    program = [str(ENVIRONMENT / "bin/moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    # Whatever the environment says of AWS is not for it.
    own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    server = subprocess.Popen(program, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _wait(address: str, server: subprocess.Popen[bytes]) -> None:
    patience = time.monotonic() + _PATIENCE
    while server.poll() is None and time.monotonic() < patience:
        try:
            with urllib.request.urlopen(f"{address}/moto-api/data.json", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise SystemExit("moto's server does not start")


if __name__ == "__main__":
    install()
