"""A REST API on this machine, with every way to page and faults that a test asks for."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.sources.oai_server import send


@dataclass(frozen=True)
class Asked:
    """One request."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]


Concerns = Callable[[Asked], bool]
Fault = Callable[[BaseHTTPRequestHandler], None]
"""Answers in the place of the API."""


@dataclass
class Api:
    """What the API holds and how it behaves.

    `/linked` pages by the header Link, `/body` by a link in the body, `/cursor`, `/offset` and `/page` as
    they say, and `/plain` is one list. `/posts/ID/comments` holds the comments of a record.
    """

    records: list[Any] = field(default_factory=list)
    """Of a time, `_at`, by which windows find them, they say nothing; by default it is `changed`."""
    comments: dict[str, list[Any]] = field(default_factory=dict)
    size: int = 3
    raw: str | None = None
    """Records as text, for `/raw`."""
    allowed: Concerns = lambda asked: True
    token: str = "token 1"
    lasts: int = 3600
    tokens_given: int = 0
    faults: list[tuple[Concerns, Fault]] = field(default_factory=list)
    """Each is met once, by the first request that it concerns."""
    always: list[tuple[Concerns, Fault]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    most_at_a_time: int = 0
    delay: float = 0.0
    url: str = ""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    """What the header Date says."""
    _at_work: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fault(self, asked: Asked) -> Fault | None:
        with self._lock:
            self.asked.append(asked)
            for index, (concerns, fault) in enumerate(self.faults):
                if concerns(asked):
                    del self.faults[index]
                    return fault
        return next((fault for concerns, fault in self.always if concerns(asked)), None)

    def answer(self, asked: Asked) -> tuple[int, Any, dict[str, str]]:
        """Return status, body and headers."""
        if not self.allowed(asked):
            return 401, {"message": "who are you?"}, {}
        parts = asked.path.strip("/").split("/")
        if parts[0] == "posts" and len(parts) == 3:
            if parts[1] not in self.comments:
                return 404, {"message": "no such post"}, {}
            return 200, self.comments[parts[1]], {}
        found = self._chosen(asked.query)
        first = int(asked.query.get("at", "0"))
        shown, rest = found[first : first + self.size], found[first + self.size :]
        follows = f"/{parts[0]}?{urlencode({**asked.query, 'at': first + self.size})}"
        match parts[0]:
            case "linked":
                return 200, shown, {"Link": f'<{follows}>; rel="next"'} if rest else {}
            case "body":
                return 200, {"items": shown, "paging": {"next": follows if rest else None}}, {}
            case "cursor":
                return 200, {"data": {"items": shown}, "next": first + self.size if rest else None}, {}
            case "offset":
                start = int(asked.query["offset"])
                limit = min(int(asked.query.get("limit", "1000")), self.size)
                return 200, {"total": len(found), "items": found[start : start + limit]}, {}
            case "page":
                start = (int(asked.query["page"]) - 1) * self.size
                pages = -(-len(found) // self.size)
                return 200, {"pages": pages, "items": found[start : start + self.size]}, {}
            case "plain":
                return 200, found, {}
        return 404, {"message": "no such thing"}, {}

    def _chosen(self, query: dict[str, str]) -> list[Any]:
        if "since" not in query:
            return self.records
        return [
            {name: value for name, value in each.items() if name != "_at"}
            for each in self.records
            if query["since"] <= each.get("_at", each.get("changed")) < query["until"]
        ]

    def wait(self) -> None:
        """Take the time that an answer takes, and count how many requests there are at a time.

        It is over before the answer is sent: whoever has it may ask again before this thread goes on.
        """
        with self._lock:
            self._at_work += 1
            self.most_at_a_time = max(self.most_at_a_time, self._at_work)
        threading.Event().wait(self.delay)
        with self._lock:
            self._at_work -= 1

    def give_token(self, form: dict[str, str]) -> tuple[int, Any]:
        if form.get("client_secret") != "client secret 1":
            return 401, {"error": "invalid_client"}
        with self._lock:
            self.tokens_given += 1
            self.token = f"token {self.tokens_given}"
        return 200, {"access_token": self.token, "expires_in": self.lasts}


@contextmanager
def serving(api: Api) -> Iterator[Api]:
    """Serve an API on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = Asked(parts.path, dict(parse_qsl(parts.query)), dict(self.headers.items()))
            api.wait()
            if (fault := api.fault(asked)) is not None:
                fault(self)
                return
            if asked.path == "/raw" and api.raw is not None:
                send(self, 200, api.raw.encode())
                return
            status, body, headers = api.answer(asked)
            send(self, status, json.dumps(body).encode(), **headers)

        def do_POST(self) -> None:
            form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            if (fault := api.fault(Asked(self.path, form, {}))) is not None:
                fault(self)
                return
            status, body = api.give_token(form)
            send(self, status, json.dumps(body).encode())

        def date_time_string(self, timestamp: float | None = None) -> str:
            return format_datetime(api.clock(), usegmt=True)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def status(code: int, body: bytes = b"no", **headers: str) -> Fault:
    return lambda handler: send(handler, code, body, **headers)


def body(text: bytes, **headers: str) -> Fault:
    return lambda handler: send(handler, 200, text, **headers)


def reset(handler: BaseHTTPRequestHandler) -> None:
    """Break the connection in the middle of a page."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"items": [{"id": 1}, {"i')
    handler.wfile.flush()
    handler.close_connection = True


def silence(handler: BaseHTTPRequestHandler) -> None:
    """Keep whoever asks waiting."""
    threading.Event().wait(1.0)
    handler.close_connection = True


def basic(user: str, password: str) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"
