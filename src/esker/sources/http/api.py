"""One API: its resource, for a window of time or whole, and once for each record of a parent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from esker.errors import SourceRefused
from esker.project.secrets import redact
from esker.project.sources import HttpSource
from esker.project.sources.http import Incremental, ParentResource, Resource
from esker.project.sources.http.source import PLACEHOLDER
from esker.sources.http.ahead import side_by_side
from esker.sources.http.auth import credentials
from esker.sources.http.json_text import parsed, raw_at, with_fields
from esker.sources.http.pages import Pages
from esker.sources.http.seen import Seen
from esker.sources.source import UNTIL
from esker.sources.spool import LineSpool
from esker.sources.web import Client
from esker.sources.windowed import TimedSource, last_moment
from esker.sources.windows import Window

_DAY = 86_400
_NOT_FOUND = 404
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Api(TimedSource):
    """What a source asks an API for."""

    def __init__(self, source: HttpSource, folder: Path | None = None) -> None:
        """Records are kept below `folder` on their way; by default where temporary files are."""
        self._source, self._folder = source, folder
        self._client = Client(
            source.timeout,
            source.retries,
            auth=credentials(source.auth),
            headers={"Accept": "application/json", **source.headers},
            per_second=source.requests_per_second,
            may_leave=False,
        )

    learns_clock = True

    def now(self) -> datetime:
        return self._client.clock() or datetime.now(UTC)

    def earliest(self) -> datetime | None:
        return None

    @property
    def granule(self) -> int:
        return _DAY if any(each.format == "date" for each in self._incrementals()) else 1

    def check(self) -> None:
        window = self._source.window
        if window is None or self.granule == 1:
            return
        is_start_inside = window.start is not None and int(window.start.timestamp()) % self.granule
        if window.every.total_seconds() % self.granule or is_start_inside:
            raise SourceRefused(
                self._source.reads,
                "It is asked for days (format: date), and the windows are parts of days.",
                "Write whole days: window: {every: 1d, start: 2026-11-01}",
            )

    def spool(self) -> LineSpool:
        return LineSpool(self._folder)

    def dated(self, rows: list[str], window: Window) -> list[str]:
        micros = str((last_moment(window) - _EPOCH) // timedelta(microseconds=1))
        return [with_fields(each, {UNTIL: micros}) for each in rows]

    def pages(self, window: Window | None) -> Iterator[list[str]]:
        """Yield the records of a window, or all that there are."""
        parent = self._source.parent
        if parent is None:
            yield from self._of(self._source, window, None, ahead=self._source.parallel)
            return
        yield from side_by_side(
            self._parents(parent, window),
            lambda record: self._children(parent, record, window),
            self._source.parallel,
        )

    def close(self) -> None:
        self._client.close()

    def _incrementals(self) -> Iterator[Incremental]:
        for resource in (self._source, self._source.parent):
            if resource is not None and resource.incremental is not None:
                yield resource.incremental

    def _parents(self, parent: ParentResource, window: Window | None) -> Iterator[str]:
        """Yield the parent's records; of those that ask for the same, one."""
        with closing(Seen(self._folder)) as seen:
            for page in self._of(parent, window, None, ahead=1):
                for record in page:
                    asked = f"{self._filled(self._source.path, record)} {self._query(self._source, record)}"
                    if seen.add(asked):
                        yield record

    def _children(self, parent: ParentResource, record: str, window: Window | None) -> Iterator[list[str]]:
        included = {}
        for name, path in parent.include.items():
            raw = raw_at(record, path)
            included[name] = "null" if raw is None else raw
        has_read = False
        try:
            for page in self._of(self._source, window, record, ahead=1):
                has_read = True
                yield [with_fields(each, included) for each in page]
        except SourceRefused as error:
            # Of a parent that is gone, nothing is read; a page that is gone would be a loss.
            if error.status != _NOT_FOUND or parent.on_missing == "error" or has_read:
                raise

    def _of(self, resource: Resource, window: Window | None, record: str | None, ahead: int) -> Pages:
        url = f"{self._source.url}{self._filled(resource.path, record)}"
        query = self._query(resource, record)
        if window is not None and (incremental := resource.incremental) is not None:
            start, end = incremental.bounds(window.since, window.until)
            query |= incremental.query(stamp(start, incremental.format), stamp(end, incremental.format))
        return Pages(self._client, resource, url, query, ahead)

    def _query(self, resource: Resource, record: str | None) -> dict[str, str]:
        if record is None:
            return dict(resource.query)
        return {
            key: PLACEHOLDER.sub(lambda found: self._field(record, found[1]), value)
            for key, value in resource.query.items()
        }

    def _filled(self, path: str, record: str | None) -> str:
        if record is None:
            return path
        return PLACEHOLDER.sub(lambda found: quote(self._field(record, found[1]), safe=""), path)

    def _field(self, record: str, path: str) -> str:
        """Return a field of a parent's record as text."""
        raw = raw_at(record, path)
        value: Any = None if raw is None else parsed(raw)
        if isinstance(value, bool):
            return str(value).lower()
        # A dot or two would be another place of the path.
        if not isinstance(value, str) or value in ("", ".", ".."):
            raise SourceRefused(
                self._source.reads,
                redact(f'A record of the parent has no usable value at "{path}": {record[:200]}'),
            )
        return value


def stamp(moment: datetime, format: str) -> str:
    """Return a moment as an API wants it: never later than it is."""
    since_1970 = moment - _EPOCH
    match format:
        case "iso":
            fraction = f".{moment.microsecond:06}" if moment.microsecond else ""
            return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"
        case "date":
            return f"{moment:%Y-%m-%d}"
        case "unix":
            return str(since_1970 // timedelta(seconds=1))
        case "unix_ms":
            return str(since_1970 // timedelta(milliseconds=1))
    return moment.strftime(format)
