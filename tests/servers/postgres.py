"""A real PostgreSQL in a temporary folder, on 127.0.0.1, with passwords switched on."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.needs import missing
from tests.servers.ports import free_port
from tests.servers.waiting import wait_until

_INITDB = ("-A", "scram-sha-256", "--no-sync", "-E", "UTF8", "--locale=C")
_SETTINGS = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
shared_buffers = 32MB
max_prepared_transactions = 8
fsync = off
"""


@dataclass(frozen=True)
class Database:
    """One database of a running server. The user may do everything in it."""

    port: int
    name: str
    user: str
    password: str

    @property
    def address(self) -> str:
        """Host, port and name, as they stand after `//` in addresses."""
        return f"127.0.0.1:{self.port}/{self.name}"

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Return a connection that commits each statement."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            dbname=self.name,
            user=self.user,
            password=self.password,
            autocommit=True,
        )


@dataclass(frozen=True)
class Postgres:
    """A running server."""

    port: int
    password: str

    def new_database(self) -> Database:
        """Create an empty database."""
        name = f"esker_{secrets.token_hex(4)}"
        with self._administration().connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.database(name)

    def database(self, name: str) -> Database:
        """Return one that is there."""
        return Database(self.port, name, "esker", self.password)

    def answers(self) -> bool:
        """Tell whether somebody can connect."""
        try:
            self._administration().connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def _administration(self) -> Database:
        return self.database("postgres")


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Start a server, and stop it and remove its files at the end."""
    server = Postgres(free_port(), f"opensesame-{secrets.token_hex(8)}")
    with _folder() as folder:
        (folder / "password").write_text(server.password)
        if _USER:
            shutil.chown(folder / "password", **_USER)
        names = ("-U", "esker", "--pwfile", folder / "password")
        _make(folder, "initdb", "-D", folder / "data", *names, *_INITDB)
        with _running(folder, server):
            yield server


@contextmanager
def running_replica(primary: Postgres) -> Iterator[Postgres]:
    """Start a server that follows another one, as it is now."""
    server = Postgres(free_port(), primary.password)
    at = f"host=127.0.0.1 port={primary.port} user=esker password={primary.password}"
    with _folder() as folder:
        _make(folder, "pg_basebackup", "-D", folder / "data", "-R", "-c", "fast", "--no-sync", "-d", at)
        with _running(folder, server):
            yield server


_USER: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
"""PostgreSQL refuses to run as root, and pytest's folders are closed to other users."""


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="esker-postgres-"))
    try:
        if _USER:
            shutil.chown(folder, **_USER)
        yield folder
    finally:
        shutil.rmtree(folder)


def _make(folder: Path, program: str, *arguments: str | Path) -> None:
    command = [_programs() / program, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, **_USER)
    assert done.returncode == 0, done.stderr


@contextmanager
def _running(folder: Path, server: Postgres) -> Iterator[None]:
    data = folder / "data"
    with (data / "postgresql.conf").open("a") as settings:
        settings.write(_SETTINGS.format(port=server.port))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [_programs() / "postgres", "-D", data], stdout=log, stderr=log, cwd=folder, **_USER
        )
    try:
        wait_until(lambda: process.poll() is not None or server.answers(), "PostgreSQL", 60)
        assert process.poll() is None, (folder / "log").read_text()
        yield
    finally:
        process.send_signal(signal.SIGINT)  # its word for "stop now, properly"
        process.wait(timeout=60)


def _programs() -> Path:
    on_path = shutil.which("initdb")
    if on_path is not None:
        return Path(on_path).resolve().parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        missing("PostgreSQL's server", "install the package postgresql, or as root on Debian: make servers")
    return found[-1].parent
