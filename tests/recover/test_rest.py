"""What fsck makes of a REST catalog that does not hand a table out."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from esker.errors import CatalogUnreachable, RepairRefused
from esker.pipeline.api import OpenProject
from tests.folder import Folder
from tests.recover.damage import checks

pytestmark = pytest.mark.spark


class _Server(ThreadingHTTPServer):
    """A catalog that answers all questions for tables with one status."""

    status = 500


class _Answer(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        if "/tables/" not in self.path:
            self._answer(200, {"defaults": {}, "overrides": {}, "namespaces": []})
        else:
            error = {"message": "no table today", "type": "Whatever", "code": self.server.status}
            self._answer(self.server.status, {"error": error})

    def _answer(self, status: int, document: object) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Retry-After", "1")  # else Iceberg waits for half a minute
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(spark_running: None) -> Iterator[_Server]:
    server = _Server(("127.0.0.1", 0), _Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def opened(server: _Server, folder: Path) -> OpenProject:
    address = f"http://127.0.0.1:{server.server_port}"
    return Folder(folder, catalog={"type": "rest", "uri": address, "warehouse": "lake"}).open()


def test_a_failure_of_the_server_may_be_damage(server: _Server, tmp_path: Path) -> None:
    """It may not be able to read what it should hand out. Nothing that Esker could do repairs that."""
    project = opened(server, tmp_path / "project")
    assert set(checks(project)) == {"metadata"}
    with pytest.raises(RepairRefused):
        list(project.plan_repairs(project.fsck()))


@pytest.mark.parametrize("status", [401, 403, None, pytest.param(503, marks=pytest.mark.soak)])
def test_a_server_that_refuses_is_no_damage(server: _Server, tmp_path: Path, status: int | None) -> None:
    """A lost connection and missing rights say nothing of the table. Of 503 Iceberg repeats the question."""
    project = opened(server, tmp_path / "project")
    _ = project.engine
    if status is None:
        server.shutdown()
        server.server_close()
    else:
        server.status = status
    with pytest.raises(CatalogUnreachable) as caught:
        project.fsck()
    assert caught.value.exit_status == 4
