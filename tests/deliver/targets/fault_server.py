"""A web server that answers as a test says, and passes on to another one what the test leaves alone."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_OWN = ("host", "connection", "content-length", "content-encoding", "accept-encoding", "transfer-encoding")
"""Headers of one connection, and of a body that was packed."""


@dataclass(frozen=True)
class Asked:
    """One request, unpacked."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What the client gets; a connection that breaks for status 0."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class FaultServer:
    """A running server."""

    address: str
    upstream: str | None
    script: Callable[[Asked], Answer | None] = lambda asked: None
    asked: list[Asked] = field(default_factory=list)

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        return self.script(asked) or self.forward(asked)

    def forward(self, asked: Asked) -> Answer:
        """Ask the server behind this one; where there is none, all is well."""
        if self.upstream is None:
            return Answer(200, b"{}")
        parts = urlsplit(self.upstream)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        headers = {name: value for name, value in asked.headers.items() if name.lower() not in _OWN}
        try:
            connection.request(asked.method, asked.path, asked.body or None, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read())
        finally:
            connection.close()

    def once(self, *answers: Answer) -> None:
        """Give these answers to the next requests, one each."""
        waiting = list(answers)
        self.script = lambda asked: waiting.pop(0) if waiting else None


@contextmanager
def running_fault_server(upstream: str | None = None) -> Iterator[FaultServer]:
    """Start a server on 127.0.0.1."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.faults = FaultServer(f"http://127.0.0.1:{server.server_address[1]}", upstream)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.faults
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    faults: FaultServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        answer = self.server.faults.answer(Asked(self.command, self.path, dict(self.headers.items()), body))
        if answer.status == 0:
            self.close_connection = True
            return
        self.send_response_only(answer.status, "said the server")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: what was asked is kept."""
