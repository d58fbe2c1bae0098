"""A web server of this machine, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Request:
    """What somebody asks for."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    is_post: bool = False


Answer = tuple[int, str, bytes]
"""Status, content type and body."""


@contextmanager
def serving(answer: Callable[[Request], Answer], port: int = 0) -> Iterator[str]:
    """Serve on a port, or on one that is free; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(is_post=False)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self._answer(is_post=True)

        def _answer(self, *, is_post: bool) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            status, kind, body = answer(Request(parts.path, query, dict(self.headers.items()), is_post))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nobody wants to read each request."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
