"""A real HTTP proxy before a server: it slows requests down, counts them, and loses answers on demand."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "expect")
CLOSED = "closed"
SILENT = "silent"
CUT = "cut"


@dataclass(frozen=True)
class Exchange:
    """A request that went through, and when: from its arrival to the end of its answer."""

    method: str
    path: str
    started: float
    ended: float

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Traffic:
    """What went through one or several proxies."""

    exchanges: list[Exchange] = field(default_factory=list)

    def in_sequence(self) -> list[Exchange]:
        """Return the longest chain of requests of which each began after the one before was answered.

        Latency costs its length times: what runs beside it costs nothing more.
        """
        chain: list[Exchange] = []
        for exchange in sorted(self.exchanges, key=lambda exchange: exchange.ended):
            if not chain or exchange.started >= chain[-1].ended:
                chain.append(exchange)
        return chain


@dataclass(frozen=True)
class Fault:
    """An answer that gets lost after the server has done what it was asked."""

    answer: str
    """CLOSED, SILENT, CUT in the middle of its content, or the status that the client gets instead."""
    behind: Callable[[], object]
    """What others do before the client notices."""


@dataclass
class Proxy:
    """A running proxy."""

    address: str
    upstream: str
    traffic: Traffic
    latency: float = 0
    admit: Callable[[dict[str, str]], dict[str, str] | None] = lambda headers: headers
    """Turns a client's headers into those that the server gets; None refuses the request."""
    refuse: Callable[[str, str], int | None] = lambda method, path: None
    """Returns the status that a method and a path, with its query, get instead of the server's answer."""
    revise: Callable[[str, dict[str, str], bytes], bytes] = lambda path, headers, content: content
    """Turns the server's answer to a path and a client's headers into the one that the client gets."""
    _faults: dict[tuple[str, str], list[Fault]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def lose_answer(
        self, method: str, path: str, answer: str, behind: Callable[[], object] = lambda: None, times: int = 1
    ) -> None:
        """Lose the answer to the next requests of this method whose path ends so."""
        self._faults[method, path] = [Fault(answer, behind)] * times

    def mend(self) -> None:
        """Lose no more answers."""
        self._faults.clear()

    @property
    def is_waiting(self) -> bool:
        """No request has met the fault yet."""
        return any(self._faults.values())

    def fault_of(self, method: str, path: str) -> Fault | None:
        """Return the fault that a request meets, once."""
        with self._lock:
            for wanted, faults in self._faults.items():
                if faults and method == wanted[0] and path.endswith(wanted[1]):
                    return faults.pop()
        return None


@contextmanager
def running_proxy(upstream: str, traffic: Traffic | None = None) -> Iterator[Proxy]:
    """Start a proxy before the server at an address."""
    server = _Server(("127.0.0.1", 0), _Handler)
    port = server.server_address[1]
    server.proxy = Proxy(f"http://127.0.0.1:{port}", upstream, traffic or Traffic())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    proxy: Proxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        upstream = urlsplit(self.server.proxy.upstream)
        self._upstream = http.client.HTTPConnection(upstream.hostname or "", upstream.port, timeout=120)

    def finish(self) -> None:
        self._upstream.close()
        super().finish()

    def _forward(self) -> None:
        proxy = self.server.proxy
        started = time.monotonic()
        body = self._body()
        time.sleep(proxy.latency)
        # The address that the client has signed, its own of this proxy, goes on as it is.
        asked = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        headers, refused = proxy.admit(asked), proxy.refuse(self.command, self.path)
        if headers is None or refused is not None:
            proxy.traffic.exchanges.append(Exchange(self.command, self.path, started, time.monotonic()))
            self.send_response_only(refused or 401)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if body or self.command in ("PUT", "POST"):
            headers["Content-Length"] = str(len(body))
        self._upstream.request(self.command, self.path, body, headers)
        answer = self._upstream.getresponse()
        content = answer.read()
        if answer.status == 200:
            content = proxy.revise(urlsplit(self.path).path, asked, content)
        fault = proxy.fault_of(self.command, urlsplit(self.path).path)
        if fault is not None:
            fault.behind()
            self._break(fault, answer, content)
        else:
            self._answer(answer, content)
        proxy.traffic.exchanges.append(Exchange(self.command, self.path, started, time.monotonic()))

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _forward

    def _answer(self, answer: http.client.HTTPResponse, content: bytes, sent: int | None = None) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        if length is not None and answer.status not in (204, 304):
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[:sent])

    def _break(self, fault: Fault, answer: http.client.HTTPResponse, content: bytes) -> None:
        if fault.answer == SILENT:
            self.connection.settimeout(30)
            self.rfile.read(1)  # until the client gives up and hangs up
        if fault.answer == CUT:
            self._answer(answer, content, len(content) // 2)
        if fault.answer in (CLOSED, SILENT, CUT):
            self.close_connection = True
            return
        self.send_response_only(int(fault.answer), "broken by the proxy")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        content = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the traffic is recorded."""
