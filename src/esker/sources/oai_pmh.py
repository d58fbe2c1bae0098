"""OAI-PMH: records of a feed by windows of time, page by page.

A resumption token counts once and not for long. When one is refused, the window is read again from its
beginning: nothing of it has been loaded by then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from esker.errors import MissingPackage, SourceRefused
from esker.project.sources import OaiPmhSource
from esker.sources.by_id import RecordsById
from esker.sources.restart import Restart
from esker.sources.source import MALFORMED, RECORD, UNTIL, Opening
from esker.sources.spool import ArrowSpool
from esker.sources.web import Client, Malformed
from esker.sources.windowed import UNTIL_FIELD, TimedSource, WindowedReader, last_moment
from esker.sources.windows import Window

try:
    from lxml import etree
except ImportError:
    raise MissingPackage("oai_pmh", "lxml", "oai") from None

_NAMESPACE = "{http://www.openarchives.org/OAI/2.0/}"
_DAY = 86_400
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("last_modified", pa.timestamp("us", tz="UTC")),
        ("deleted", pa.bool_()),
        ("sets", pa.list_(pa.string())),
        ("content", pa.string()),
    ]
)
_SPOOLED = pa.schema([*_SCHEMA, (MALFORMED, pa.string()), (RECORD, pa.string()), UNTIL_FIELD])
"""With what is wrong with a record, and its datestamp once more."""
_SHOWN = 200


@dataclass(frozen=True)
class _Page:
    """One answer: records and the token of the next page, or an error."""

    rows: pa.Table | None
    token: str | None = None
    """Empty on the last page of a list, as the protocol demands; None where it has none at all."""
    size: int | None = None
    """Records of the whole list, as far as the feed knows."""
    error: str = ""
    told: str = ""


class OaiPmhReader(WindowedReader):
    """Reads what is due of a feed, or some of its records."""

    @classmethod
    def of(cls, opening: Opening) -> OaiPmhReader:
        source = opening.pipeline.source
        assert isinstance(source, OaiPmhSource)
        return cls(opening, Feed(source), source.window)

    def by_ids(self, ids: Sequence[str]) -> RecordsById:
        source = self._opening.pipeline.source
        assert isinstance(source, OaiPmhSource)
        return RecordsById(self._opening, Feed(source), ids)


class Feed(TimedSource):
    """One feed."""

    schema = _SCHEMA

    def __init__(self, source: OaiPmhSource) -> None:
        self._source = source
        login = (source.user, source.password.get_secret_value()) if source.user and source.password else None
        self._client = Client(source.timeout, source.retries, auth=login)

    def now(self) -> datetime:
        return _moment(self._identity.findtext(f"{_NAMESPACE}responseDate") or "")

    def earliest(self) -> datetime | None:
        text = self._identity.findtext(f".//{_NAMESPACE}earliestDatestamp")
        if text is None:
            return None
        seconds = int(_moment(text).timestamp()) // self.granule * self.granule
        return datetime.fromtimestamp(seconds, UTC)

    @cached_property
    def granule(self) -> int:
        days_only = self._identity.findtext(f".//{_NAMESPACE}granularity") == "YYYY-MM-DD"
        return _DAY if days_only else 1

    def check(self) -> None:
        window = self._source.window
        is_start_inside = window.start is not None and int(window.start.timestamp()) % self.granule
        if window.every.total_seconds() % self.granule or is_start_inside:
            raise SourceRefused(
                self._source.url,
                "The feed knows days only, and the windows are parts of days.",
                "Write whole days: window: {every: 1d, start: 2026-11-01}",
            )

    def spool(self) -> ArrowSpool:
        return ArrowSpool(_SPOOLED)

    def dated(self, rows: pa.Table, window: Window) -> pa.Table:
        """Return records as they are: each has a datestamp. One that cannot be read is of its window."""
        moments = rows.column(UNTIL).fill_null(pa.scalar(last_moment(window), UNTIL_FIELD.type))
        return rows.set_column(rows.schema.get_field_index(UNTIL), UNTIL_FIELD, moments)

    def pages(self, window: Window) -> Iterator[pa.Table]:
        asked: dict[str, str] = {
            "verb": "ListRecords",
            "metadataPrefix": self._source.metadata_prefix,
            "from": self._stamp(window.start),
            # Inclusive in the protocol, while windows are half open.
            "until": self._stamp(window.end - self.granule),
        }
        if self._source.set is not None:
            asked["set"] = self._source.set
        tokens: set[str] = set()
        read, size = 0, 0
        while True:
            page = self._client.get(self._source.url, asked, _page)
            if page.rows is None:
                self._check(page, asked)
                return
            read, size = read + len(page.rows), page.size or size
            # The end is told by an empty token. Feeds that leave it out give all the records they promised.
            if tokens and page.token is None and (not len(page.rows) or read < size):
                raise Restart(f"the feed's list ends after {read} records, without saying that it does")
            yield page.rows
            if not page.token:
                return
            if page.token in tokens:
                raise Restart(f'the feed gave the resumption token "{page.token}" twice')
            tokens.add(page.token)
            asked = {"verb": "ListRecords", "resumptionToken": page.token}

    def record(self, id: str) -> pa.Table:
        """Return one record, or raise SourceRefused."""
        asked = {
            "verb": "GetRecord",
            "identifier": id,
            "metadataPrefix": self._source.metadata_prefix,
        }
        page = self._client.get(self._source.url, asked, _page)
        if page.rows is None:
            why = f"{page.error}: {page.told}".rstrip(": ")
            if page.error != "idDoesNotExist":
                raise SourceRefused(self._source.url, f'Asked for record "{id}": {why}')
            told = f'It has no record "{id}": {why}'
            raise SourceRefused(self._source.url, told, "Take the id out of the list.", is_gone=True)
        return page.rows

    def close(self) -> None:
        self._client.close()

    @cached_property
    def _identity(self) -> Any:
        return self._client.get(self._source.url, {"verb": "Identify"}, _identity)

    def _check(self, page: _Page, asked: Mapping[str, str]) -> None:
        """Raise for an error that the feed tells, unless it is that there is nothing."""
        if page.error == "noRecordsMatch" and "resumptionToken" not in asked:
            return
        if page.error == "noRecordsMatch":
            raise Restart("the feed gave a resumption token, and no longer has what it stands for")
        if page.error == "badResumptionToken" and "resumptionToken" in asked:
            raise Restart(f"the feed no longer knows its resumption token: {page.told}")
        raise SourceRefused(self._source.url, f"{page.error}: {page.told}".rstrip(": "))

    def _stamp(self, seconds: int) -> str:
        moment = datetime.fromtimestamp(seconds, UTC)
        return f"{moment:%Y-%m-%d}" if self.granule == _DAY else f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _document(answer: Any) -> Any:
    if not answer.content.strip():
        raise Malformed("The answer is empty.")
    # Entities could fetch files, or grow without end.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring(answer.content, parser)
    except etree.XMLSyntaxError as error:
        raise Malformed(f"The answer is no XML: {error}") from error
    if root.tag != f"{_NAMESPACE}OAI-PMH":
        raise Malformed(f"The answer is no OAI-PMH document but <{root.tag}>.")
    return root


def _identity(answer: Any) -> Any:
    root = _document(answer)
    if root.find(f"{_NAMESPACE}Identify") is None or root.find(f"{_NAMESPACE}responseDate") is None:
        raise Malformed("The feed does not say what it is.")
    for name in ("responseDate", "earliestDatestamp"):
        for told in root.iterfind(f".//{_NAMESPACE}{name}"):
            _moment(told.text or "")  # it is needed later, and may be asked for again now
    return root


def _page(answer: Any) -> _Page:
    root = _document(answer)
    if (error := root.find(f"{_NAMESPACE}error")) is not None:
        return _Page(None, error=error.get("code") or "", told=(error.text or "").strip())
    found = root.find(f"{_NAMESPACE}ListRecords")
    if found is None:
        found = root.find(f"{_NAMESPACE}GetRecord")
    if found is None:
        raise Malformed("The answer has neither records nor an error.")
    rows = [_row(record) for record in found.iterfind(f"{_NAMESPACE}record")]
    token = found.find(f"{_NAMESPACE}resumptionToken")
    table = pa.Table.from_pylist(rows, schema=_SPOOLED)
    if token is None:
        return _Page(table)
    size = token.get("completeListSize", "")
    return _Page(table, (token.text or "").strip(), int(size) if size.isdecimal() else None)


def _row(record: Any) -> dict[str, Any]:
    """Return a record as a row. One that is not as it should be is a bad row, and stops no other."""
    header = record.find(f"{_NAMESPACE}header")
    if header is None:
        text = etree.tostring(record, encoding="unicode", with_tail=False)
        return {MALFORMED: f"the record has no header: {text[:_SHOWN]}", RECORD: text}
    metadata = record.find(f"{_NAMESPACE}metadata")
    content = next(iter(metadata), None) if metadata is not None else None
    stamp = header.findtext(f"{_NAMESPACE}datestamp") or ""
    row = {
        "id": header.findtext(f"{_NAMESPACE}identifier"),
        "deleted": header.get("status") == "deleted",
        "sets": [each.text for each in header.iterfind(f"{_NAMESPACE}setSpec")],
        "content": _text(content) if content is not None else None,
    }
    try:
        moment = _moment(stamp)
    except Malformed as error:
        # As the quarantine keeps rows: values are texts.
        texts = {**row, "last_modified": stamp, "deleted": str(row["deleted"]).lower()}
        told = f'the datestamp of record "{row["id"]}" cannot be read: {error}'
        return {**row, MALFORMED: told, RECORD: json.dumps(texts, ensure_ascii=False)}
    return {**row, "last_modified": moment, UNTIL: moment}


def _text(content: Any) -> str:
    """Return an element as XML that stands for itself: without names that only the feed's envelope uses."""
    alone = deepcopy(content)
    own = [prefix for prefix in content.nsmap if prefix and prefix not in content.getparent().nsmap]
    etree.cleanup_namespaces(alone, keep_ns_prefixes=own)
    text: str = etree.tostring(alone, encoding="unicode", with_tail=False)
    return text


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Malformed(f'"{text}" is no time.') from None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
