"""A real MariaDB in a temporary folder, on 127.0.0.1, with a password."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.needs import missing
from tests.servers.ports import free_port
from tests.servers.waiting import wait_until

_PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb")


@dataclass(frozen=True)
class Session:
    """A session that is open."""

    process: subprocess.Popen[str]

    def send(self, statements: str) -> None:
        """Run statements, and wait until they are done."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{statements}; SELECT 'done';\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", "a statement has failed"


@dataclass(frozen=True)
class MariaDb:
    """A running server with the database `shop`, in which the user may do everything."""

    port: int
    socket: Path
    password: str
    user: str = "esker"

    def sql(self, statement: str, database: str = "shop") -> str:
        """Run statements as the administrator, and return what they answer."""
        command = [_program("mariadb"), "--no-defaults", f"-S{self.socket}", "-uroot", "-N", database]
        done = subprocess.run(command, input=statement, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a session of the administrator's, in which transactions stay open between statements."""
        command = [_program("mariadb"), "--no-defaults", f"-S{self.socket}", "-uroot", "-N", "-n", "shop"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield Session(process)
            assert process.stdin is not None
            process.stdin.close()

    def answers(self) -> bool:
        """Tell whether somebody can connect."""
        command = [_program("mariadb"), "--no-defaults", f"-S{self.socket}", "-uroot", "-e", "SELECT 1"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def running_mariadb() -> Iterator[MariaDb]:
    """Start a server, and stop it and remove its files at the end."""
    programs = {name: _program(name) for name in _PROGRAMS}
    folder = Path(tempfile.mkdtemp(prefix="esker-mariadb-"))
    server = MariaDb(free_port(), folder / "s", f"opensesame-{secrets.token_hex(8)}")
    data = f"--datadir={folder / 'data'}"
    try:
        install = [programs["mariadb-install-db"], "--no-defaults", "--user=root", data, "--skip-test-db"]
        install += ["--auth-root-authentication-method=normal", "--skip-log-bin"]
        subprocess.run(install, check=True, capture_output=True, cwd=folder)
        command = [programs["mariadbd"], "--no-defaults", "--user=root", data, f"--socket={server.socket}"]
        command += [f"--port={server.port}", "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=32M"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*command, f"--pid-file={folder / 'pid'}"], stdout=log, stderr=log, cwd=folder
            )
        try:
            wait_until(lambda: process.poll() is not None or server.answers(), "MariaDB", 60)
            assert process.poll() is None, (folder / "log").read_text()
            made = f"CREATE DATABASE shop; CREATE USER esker@'%' IDENTIFIED BY '{server.password}';"
            server.sql(f"{made} GRANT ALL ON shop.* TO esker@'%';", "mysql")
            yield server
        finally:
            process.terminate()
            process.wait(timeout=60)
    finally:
        shutil.rmtree(folder)


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")
    if found is None:
        missing("MariaDB's server", "install mariadb-server-core and mariadb-client-core: make servers")
    return found
