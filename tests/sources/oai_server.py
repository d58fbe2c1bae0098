"""An OAI-PMH feed on this machine, with a clock that stands still and faults that a test asks for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

_UNKNOWN = '<error code="idDoesNotExist">no such record</error>'
Query = dict[str, str]
Fault = Callable[[BaseHTTPRequestHandler], None]
"""Answers in the place of the feed."""


def moment(text: str) -> datetime:
    """Return a time of 1 January 2026: `12:05`."""
    return datetime.fromisoformat(f"2026-01-01T{text}").replace(tzinfo=UTC)


@dataclass
class Record:
    """One record."""

    id: str
    changed: datetime
    content: str | None = "one"
    sets: tuple[str, ...] = ()
    stamp: str | None = None
    """What the feed says when it was changed, if that is something else."""


@dataclass
class Feed:
    """What the feed holds and how it behaves."""

    now: datetime
    records: list[Record] = field(default_factory=list)
    page: int = 3
    repeated: int = 0
    """Records at the end of a page that stand on the next one as well."""
    granularity: str = "YYYY-MM-DDThh:mm:ssZ"
    earliest: datetime = field(default_factory=lambda: moment("00:00"))
    faults: list[tuple[Callable[[Query], bool], Fault]] = field(default_factory=list)
    """Each is met once, by the first request that it concerns."""
    always: list[tuple[Callable[[Query], bool], Fault]] = field(default_factory=list)
    asked: list[Query] = field(default_factory=list)
    url: str = ""
    _tokens: dict[str, tuple[list[Record], int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, id: str, changed: str, content: str | None = "one", sets: tuple[str, ...] = ()) -> None:
        """Add a record, or change the one with its id."""
        self.records = [record for record in self.records if record.id != id]
        self.records.append(Record(id, moment(changed), content, sets))

    def windows(self) -> list[str]:
        """Return where the windows begin that were asked for."""
        return [query["from"] for query in self.asked if "from" in query]

    def fault(self, query: Query) -> Fault | None:
        with self._lock:
            self.asked.append(query)
            for index, (concerns, fault) in enumerate(self.faults):
                if concerns(query):
                    del self.faults[index]
                    return fault
        return next((fault for concerns, fault in self.always if concerns(query)), None)

    def answer(self, query: Query) -> str:
        head = (
            '<?xml version="1.0" encoding="UTF-8"?><OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
            f"<responseDate>{_stamp(self.now)}</responseDate>"
        )
        if query["verb"] == "Identify":
            body = (
                f"<Identify><earliestDatestamp>{self._datestamp(self.earliest)}</earliestDatestamp>"
                f"<granularity>{self.granularity}</granularity></Identify>"
            )
        elif query["verb"] == "GetRecord":
            found = [record for record in self.records if record.id == query["identifier"]]
            body = f"<GetRecord>{self._record(found[0])}</GetRecord>" if found else _UNKNOWN
        else:
            body = self._list(query)
        return f"{head}{body}</OAI-PMH>"

    def _list(self, query: Query) -> str:
        if token := query.get("resumptionToken"):
            if token not in self._tokens:
                return '<error code="badResumptionToken">unknown or used</error>'
            found, first = self._tokens.pop(token)  # counts once
        else:
            if query["metadataPrefix"] != "marc":
                return '<error code="cannotDisseminateFormat">marc only</error>'
            low, high = query["from"], query["until"]
            found = sorted(
                (r for r in self.records if low <= self._datestamp(r.changed) <= high),
                key=lambda record: (record.changed, record.id),
            )
            found = [r for r in found if query.get("set") is None or query["set"] in r.sets]
            first = 0
        if not found:
            return '<error code="noRecordsMatch"/>'
        shown, rest = found[first : first + self.page], found[first + self.page :]
        token = ""
        if rest:
            token = f"token {len(self.asked)}"
            self._tokens[token] = (found, first + self.page - self.repeated)
        return (
            f"<ListRecords>{''.join(map(self._record, shown))}"
            f"<resumptionToken>{token}</resumptionToken></ListRecords>"
        )

    def knows(self, query: Query) -> bool:
        """Tell whether a request has a token that still counts."""
        return query.get("resumptionToken") in self._tokens

    def forget_tokens(self) -> None:
        self._tokens.clear()

    def _record(self, record: Record) -> str:
        status = ' status="deleted"' if record.content is None else ""
        sets = "".join(f"<setSpec>{name}</setSpec>" for name in record.sets)
        metadata = (
            f'<metadata><m:leaf xmlns:m="urn:marc">{escape(record.content)}</m:leaf></metadata>'
            if record.content is not None
            else ""
        )
        return (
            f"<record><header{status}><identifier>{record.id}</identifier>"
            f"<datestamp>{record.stamp or self._datestamp(record.changed)}</datestamp>{sets}</header>"
            f"{metadata}</record>"
        )

    def _datestamp(self, changed: datetime) -> str:
        return f"{changed:%Y-%m-%d}" if self.granularity == "YYYY-MM-DD" else _stamp(changed)


@contextmanager
def serving(feed: Feed) -> Iterator[Feed]:
    """Serve a feed on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
            if (fault := feed.fault(query)) is not None:
                fault(self)
                return
            send(self, 200, feed.answer(query).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    feed.url = f"http://127.0.0.1:{server.server_port}/oai"
    try:
        yield feed
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    """Answer a request."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _stamp(changed: datetime) -> str:
    return f"{changed:%Y-%m-%dT%H:%M:%SZ}"
