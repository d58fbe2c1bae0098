"""The archive's catalogue as an OAI-PMH feed: pages with resumption tokens, and records that were deleted."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from xml.sax.saxutils import escape

from examples.catalogue.servers.serving import Answer, Request

_PAGE = 10
_NOTHING = '<error code="noRecordsMatch"/>'


@dataclass(frozen=True)
class CalmRecord:
    """One record. Fields may have several values."""

    fields: Mapping[str, Sequence[str]]
    changed: datetime
    is_published: bool = True
    is_deleted: bool = False


@dataclass
class Calm:
    """What CALM holds."""

    records: dict[str, CalmRecord] = field(default_factory=dict)
    _tokens: dict[str, list[tuple[str, CalmRecord]]] = field(default_factory=dict)
    """What is still to come. Each counts once."""
    _given: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(
        self, id: str, fields: Mapping[str, Sequence[str]], changed: datetime, *, is_published: bool = True
    ) -> None:
        """Add a record, or change the one with this id."""
        self.records[id] = CalmRecord(dict(fields), changed, is_published)

    def delete(self, id: str, changed: datetime) -> None:
        self.records[id] = CalmRecord({}, changed, is_deleted=True)

    def answer(self, request: Request) -> Answer:
        query = request.query
        match query.get("verb"):
            case "Identify":
                body = self._identify()
            case "ListRecords":
                body = self._list(query)
            case "GetRecord":
                found = self.records.get(query.get("identifier", ""))
                unknown = '<error code="idDoesNotExist"/>'
                body = f"<GetRecord>{_xml(query['identifier'], found)}</GetRecord>" if found else unknown
            case _:
                body = '<error code="badVerb"/>'
        text = (
            '<?xml version="1.0" encoding="UTF-8"?><OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
            f"<responseDate>{_stamp(datetime.now(UTC))}</responseDate>{body}</OAI-PMH>"
        )
        return 200, "text/xml; charset=utf-8", text.encode()

    def _identify(self) -> str:
        earliest = min(record.changed for record in self.records.values())
        return (
            "<Identify><repositoryName>CALM</repositoryName><protocolVersion>2.0</protocolVersion>"
            f"<earliestDatestamp>{_stamp(earliest)}</earliestDatestamp>"
            "<deletedRecord>persistent</deletedRecord>"
            "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity></Identify>"
        )

    def _list(self, query: Mapping[str, str]) -> str:
        if token := query.get("resumptionToken"):
            with self._lock:
                found = self._tokens.pop(token, [])
            if not found:
                return '<error code="badResumptionToken"/>'
        elif query.get("metadataPrefix") != "calm":
            return '<error code="cannotDisseminateFormat"/>'
        else:
            first, last = query.get("from", ""), query.get("until", "9999")
            found = [
                (id, record)
                for id, record in sorted(self.records.items(), key=lambda each: (each[1].changed, each[0]))
                if first <= _stamp(record.changed) <= last  # both are inclusive
            ]
            if not found:
                return _NOTHING
        shown = "".join(_xml(id, record) for id, record in found[:_PAGE])
        return f"<ListRecords>{shown}{self._token(found[_PAGE:])}</ListRecords>"

    def _token(self, rest: list[tuple[str, CalmRecord]]) -> str:
        if not rest:
            return "<resumptionToken/>"
        with self._lock:
            self._given += 1
            self._tokens[f"page-{self._given}"] = rest
            return f"<resumptionToken>page-{self._given}</resumptionToken>"


def _xml(id: str, record: CalmRecord) -> str:
    status = ' status="deleted"' if record.is_deleted else ""
    published = "<setSpec>published</setSpec>" if record.is_published and not record.is_deleted else ""
    header = (
        f"<header{status}><identifier>{escape(id)}</identifier>"
        f"<datestamp>{_stamp(record.changed)}</datestamp>{published}</header>"
    )
    if record.is_deleted:
        return f"<record>{header}</record>"
    values = "".join(
        f"<{name}>{escape(value)}</{name}>" for name, texts in record.fields.items() for value in texts
    )
    content = f'<calm xmlns="http://example.org/calm">{values}</calm>'
    return f"<record>{header}<metadata>{content}</metadata></record>"


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
