"""Go from page to page of one resource, as its paginator says.

No page is taken for the last one without a reason, and none is read for ever: pages that lead back, to
another server, or end before the API says so are errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, takewhile
from typing import Any
from urllib.parse import urljoin

from esker.errors import PagesAstray, SourceRefused
from esker.project.secrets import redact
from esker.project.sources.http import (
    CursorPaginator,
    HeaderLinkPaginator,
    JsonLinkPaginator,
    OffsetPaginator,
    PageNumberPaginator,
    Resource,
    SinglePagePaginator,
)
from esker.sources.http.ahead import Ahead
from esker.sources.http.json_text import MISSING, elements, parsed, raw_at, value_at
from esker.sources.restart import Restart
from esker.sources.web import Client, Malformed, address, is_same_server

_NO_CONTENT = 204
_EMPTY = 1000
"""So many pages without a record, one after the other, lead nowhere."""


@dataclass(frozen=True)
class Page:
    """The records of an answer, each as it stands there, and what it says of other pages."""

    records: list[str]
    mark: str | None
    """The next page's link or cursor, or the total."""


@dataclass(frozen=True)
class Pages:
    """The pages of one resource, at one address."""

    client: Client
    resource: Resource
    url: str
    query: Mapping[str, str]
    ahead: int = 1
    """So many pages are asked for at a time, where the API allows it."""

    def __iter__(self) -> Iterator[list[str]]:
        empty = 0
        for records in self._walk():
            empty = 0 if records else empty + 1
            if empty == _EMPTY:
                raise self._astray(f"{_EMPTY} pages, one after the other, hold no record.")
            if records:
                yield records

    def _walk(self) -> Iterator[list[str]]:
        match self.resource.paginator:
            case SinglePagePaginator():
                return self._single()
            case HeaderLinkPaginator() | JsonLinkPaginator():
                return self._linked()
            case CursorPaginator(cursor_param=param):
                return self._by_cursor(param)
            case OffsetPaginator() as paginator:
                return self._by_offset(paginator)
            case PageNumberPaginator() as paginator:
                return self._by_number(paginator)
        raise AssertionError

    def _ask(self, more: Mapping[str, str] | None = None) -> Page:
        return self.client.get(self.url, {**self.query, **(more or {})}, self._page)

    def _ask_or_none(self, more: Mapping[str, str] | None = None) -> Page:
        """Return a page, or one without records where the API says by its status that there are none.

        Only for pages that may be beyond the last one: elsewhere, one that is not found is a loss.
        """
        try:
            return self._ask(more)
        except SourceRefused as error:
            if self.resource.empty_status is None or error.status != self.resource.empty_status:
                raise
            return Page([], None)

    def _single(self) -> Iterator[list[str]]:
        page = self._ask_or_none()
        if page.mark:
            why = f'There is a next page, "{redact(page.mark)}", and it would be left out.'
            raise self._astray(why, "Say how to reach it: paginator: {type: header_link}")
        yield page.records

    def _linked(self) -> Iterator[list[str]]:
        here = address(self.url, self.query)
        seen = {here}
        page = self._ask_or_none()
        while True:
            yield page.records
            if not page.mark:
                return
            target = self._target(here, page.mark)
            here = address(target, {})
            if here in seen:
                raise self._astray(f'The next page, "{redact(target)}", has been read already.')
            seen.add(here)
            page = self.client.get(target, {}, self._page)

    def _target(self, here: str, link: str) -> str:
        """Return where a link leads, or raise PagesAstray: credentials would go along to another server."""
        try:
            target = urljoin(here, link)
            is_here = is_same_server(self.url, target)
        except ValueError:
            raise self._astray(f'The link to the next page, "{redact(link)}", is no address.') from None
        if not is_here:
            why = f'The next page is on another server, "{redact(target)}", which is not asked.'
            raise self._astray(why, "Correct url:, if this is where the API lives.")
        return target

    def _by_cursor(self, param: str) -> Iterator[list[str]]:
        seen: set[str] = set()
        page = self._ask_or_none()
        while True:
            yield page.records
            if not page.mark:
                return
            if page.mark in seen:
                raise self._astray(f'The cursor "{redact(page.mark)}" came twice.')
            seen.add(page.mark)
            page = self._ask({param: page.mark})

    def _by_offset(self, paginator: OffsetPaginator) -> Iterator[list[str]]:
        size = {paginator.limit_param: str(paginator.limit)} if paginator.limit_param else {}

        def ask(offset: int) -> Page:
            return self._ask_or_none({**size, paginator.offset_param: str(offset)})

        at, step = paginator.offset, 0
        total: int | None = None
        before: list[str] = []
        with Ahead(ask, self.ahead) as ahead:
            while True:
                # An API may give fewer records than it is asked for: what came is what counts.
                page = ahead.take(at, _following(at, step, total))
                total = self._total(page, total)
                self._check(page, before, at, total, "records")
                if not page.records:
                    return
                yield page.records
                at, step, before = at + len(page.records), step or len(page.records), page.records
                if at == total:
                    return

    def _by_number(self, paginator: PageNumberPaginator) -> Iterator[list[str]]:
        def ask(number: int) -> Page:
            return self._ask_or_none({paginator.page_param: str(number)})

        first = at = paginator.base_page
        total: int | None = None
        before: list[str] = []
        with Ahead(ask, self.ahead) as ahead:
            while True:
                # How many there are is known from the first one on: before, only one is asked for.
                step = 0 if at == first else 1
                page = ahead.take(at, _following(at, step, None if total is None else first + total))
                total = self._total(page, total)
                self._check(page, before, at - first, total, "pages")
                if not page.records:
                    return
                yield page.records
                at, before = at + 1, page.records
                if at - first == total:
                    return

    @staticmethod
    def _total(page: Page, before: int | None) -> int | None:
        """Return how many there are. Raises Restart when they have become fewer.

        What stood behind has moved up then, and some of it into places that were read already.
        """
        if page.mark is None:
            return before
        total = int(page.mark)
        if before is not None and total < before:
            raise Restart(f"there were {before} in its list, and now {total}: some may have been missed")
        return total

    def _check(self, page: Page, before: list[str], read: int, total: int | None, noun: str) -> None:
        """Raise for a page that ends too early, or not at all."""
        if not page.records and total is not None and read < total:
            raise self._astray(f"A page is empty after {read} {noun}, and {total} are there.")
        if page.records and page.records == before:
            raise self._astray("It gives the same page twice, as if it did not know the parameters of pages.")

    def _astray(self, why: str, remedy: str = "") -> PagesAstray:
        return PagesAstray(redact(address(self.url, self.query)), why, remedy)

    def _page(self, answer: Any) -> Page:
        """Read an answer. Raises Malformed for one that is not what it should be."""
        if answer.status_code == _NO_CONTENT:
            return Page([], None)
        try:
            text = answer.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Malformed("The answer is not UTF-8.") from error
        body = parsed(text)
        selector = self.resource.data_selector
        chosen = value_at(body, selector)
        if self.resource.single_record:
            if not isinstance(chosen, dict):
                raise Malformed(
                    f'The answer has no record at "{selector}" (data_selector): {text[:100]}',
                    _selectors(body),
                )
            record = raw_at(text, selector)
            return Page([record] if record is not None else [], self._mark(answer, body))
        # null is how some languages write an empty list.
        if chosen is not None and not isinstance(chosen, list):
            raise Malformed(
                f'The answer has no list at "{selector}" (data_selector): {text[:100]}', _selectors(body)
            )
        records = list(elements(text, selector)) if chosen else []
        if len(records) != len(chosen or ()):
            raise Malformed(f'The answer has several lists at "{selector}": one name stands there twice.')
        return Page(records, self._mark(answer, body))

    def _mark(self, answer: Any, body: Any) -> str | None:
        """Return what an answer says of other pages."""
        match self.resource.paginator:
            case SinglePagePaginator():
                return _link(answer, "next") or self._unread_link(body)
            case HeaderLinkPaginator(links_next_key=key):
                return _link(answer, key)
            case JsonLinkPaginator(next_url_path=path) | CursorPaginator(cursor_path=path):
                found = value_at(body, path)
                if found is MISSING and (link := self._unread_link(body)) is not None:
                    why = f'There is nothing at "{path}", and another link leads on: "{redact(link)}".'
                    raise self._astray(why, "Correct the paginator: it must say where that link stands.")
                if found is MISSING or found in (None, "", False):
                    return None
                if not isinstance(found, str):
                    raise Malformed(f'What leads to the next page, at "{path}", is neither text nor number.')
                return found
            case OffsetPaginator(total_path=total) | PageNumberPaginator(total_path=total):
                if total is None:
                    return None
                found = value_at(body, total)
                if not isinstance(found, str) or not found.isdecimal():
                    remedy = "Correct total_path: of the paginator, or leave it out."
                    raise Malformed(f'The answer has no number at "{total}" (total_path).', remedy)
                return found
        raise AssertionError

    def _unread_link(self, body: Any) -> str | None:
        """Return a link to a next page that nobody told of, if it is plainly one: beside the records."""
        places = [body, *body.values()] if isinstance(body, dict) else []
        for place in places:
            found = place.get("next") if isinstance(place, dict) else None
            if isinstance(found, str) and found.startswith(("http://", "https://")):
                return found
        return None


def _selectors(body: Any) -> str:
    """Return what to do about a data_selector that finds nothing: what it could be in this answer."""
    if isinstance(body, list):
        return "The answer itself is a list: leave data_selector: out."
    lists = [".".join(path) for path in _lists(body)]
    if lists:
        return f"Correct data_selector:. The answer has lists at {', '.join(lists[:5])}."
    return "Correct data_selector:. The answer has no list; for one record, write single_record: true."


def _lists(body: Any, depth: int = 3) -> Iterator[tuple[str, ...]]:
    """Yield where lists stand in an answer, not too deep."""
    if not isinstance(body, dict) or not depth:
        return
    for name, value in body.items():
        if isinstance(value, list):
            yield (name,)
        for path in _lists(value, depth - 1):
            yield (name, *path)


def _link(answer: Any, key: str) -> str | None:
    found = answer.links.get(key, {}).get("url")
    return found if isinstance(found, str) and found else None


def _following(at: int, step: int, end: int | None) -> Iterable[int]:
    """Yield where the pages behind one begin, as far as one can tell."""
    if not step:
        return ()
    later = count(at + step, step)
    return later if end is None else takewhile(lambda each: each < end, later)
