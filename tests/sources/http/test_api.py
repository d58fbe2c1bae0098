"""Pages, credentials, children and faults of an API, without Spark."""

from __future__ import annotations

import json
import pickle
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import stamina
from ruamel.yaml import YAML

from esker.errors import EskerError, PagesAstray, SourceRefused, SourceUnavailable
from esker.project.secrets import FromEnvironment, redact
from esker.project.sources import HttpSource
from esker.sources.http import api as reading
from esker.sources.restart import Restart
from esker.sources.windows import Window
from tests.sources.rest_server import Api, Asked, Fault, basic, body, reset, serving, silence, status

PAGINATORS = {"single_page", "header_link", "json_link", "cursor", "offset", "page_number"}
OFFSET = {"type": "offset", "limit": 3}
WAYS: dict[str, dict[str, Any]] = {
    "linked": {"paginator": {"type": "header_link"}},
    "body": {"paginator": {"type": "json_link", "next_url_path": "paging.next"}, "data_selector": "items"},
    "cursor": {
        "paginator": {"type": "cursor", "cursor_path": "next", "cursor_param": "at"},
        "data_selector": "$.data.items",
    },
    "offset": {"paginator": OFFSET, "data_selector": "items"},
    "offset_total": {
        "path": "offset",
        "paginator": OFFSET | {"total_path": "total"},
        "data_selector": "items",
    },
    "page": {"paginator": {"type": "page_number"}, "data_selector": "items"},
    "page_total": {
        "path": "page",
        "paginator": {"type": "page_number", "total_path": "pages"},
        "data_selector": "items",
    },
    "plain": {"paginator": {"type": "single_page"}},
}


@pytest.fixture
def api() -> Iterator[Api]:
    with serving(Api([{"id": number} for number in range(10)])) as api:
        yield api


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """Repeat requests at once, as often as declared."""
    with stamina.set_testing(True, attempts=3, cap=True):
        yield


def source(api: Api, way: str, **keys: Any) -> HttpSource:
    declared: dict[str, Any] = {"url": api.url, "path": way, "retries": 2, **WAYS.get(way, {}), **keys}
    return HttpSource.model_validate(declared)


def read(declared: HttpSource, window: Window | None = None) -> list[Any]:
    """Return all records, in the order in which they came."""
    opened = reading.Api(declared)
    try:
        return [json.loads(record) for page in opened.pages(window) for record in page]
    finally:
        opened.close()


def secret(text: str) -> FromEnvironment:
    """Return a text as it comes from the environment."""
    return FromEnvironment(text)


# --- an API that behaves -------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [0, 1, 9, 10])
def test_every_way_to_page(api: Api, way: str, count: int) -> None:
    """Every record comes once, in order, whether the last page is full or not, or there is none."""
    api.records = api.records[:count]
    assert [record["id"] for record in read(source(api, way, query={"q": "a b&c"}))] == list(range(count))
    assert {asked.query["q"] for asked in api.asked} == {"a b&c"}


@pytest.mark.parametrize("way", ["offset", "offset_total", "page", "page_total"])
def test_pages_are_asked_for_side_by_side(api: Api, way: str) -> None:
    api.records = [{"id": number} for number in range(60)]
    api.delay = 0.05
    assert [record["id"] for record in read(source(api, way))] == list(range(60))
    assert 2 <= api.most_at_a_time <= 4
    if way.endswith("total"):
        assert len(api.asked) == 20
    api.most_at_a_time = 0
    read(source(api, way, parallel=1))
    assert api.most_at_a_time == 1


def test_fewer_records_than_asked_for(api: Api) -> None:
    """An API that gives three when it is asked for a hundred, and fewer still now and then."""
    hundred = {"type": "offset", "limit": 100}
    assert len(read(source(api, "offset", paginator=hundred))) == 10
    page = body(b'{"items": [{"id": 3}], "total": 10}')
    api.faults = [(lambda asked: asked.query["offset"] == "3", page)]
    assert [record["id"] for record in read(source(api, "offset", paginator=hundred))] == list(range(10))


def test_numbers_stay_as_they_are(api: Api) -> None:
    """Also in records over many lines, and behind values that look like the list."""
    number = "1234567890123456789012345678901234567890.10"
    record = f'{{"n": {number},\r\n "t": "a\\nb\\u00e9 ]"}}'
    api.raw = f'{{"a": {{"items": [1]}}, "items": [\n {record} , {{}}, 1e400]}}'
    opened = reading.Api(source(api, "raw", data_selector="items"))
    [page] = list(opened.pages(None))
    opened.close()
    assert page == [record.replace("\r\n", "  "), "{}", "1e400"]


def test_windows_become_parameters(api: Api) -> None:
    window = Window.between(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
    for keys, expected in (
        ({}, ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")),
        ({"end": "inclusive"}, ("2026-01-01T00:00:00Z", "2026-01-01T23:59:59.999999Z")),
        ({"start": "exclusive"}, ("2025-12-31T23:59:59.999999Z", "2026-01-02T00:00:00Z")),
        ({"format": "date", "end": "inclusive"}, ("2026-01-01", "2026-01-01")),
        # Whole seconds: an end before the last one would leave out what lies between.
        ({"format": "unix", "end": "inclusive"}, ("1767225600", "1767312000")),
        ({"format": "unix", "end": "inclusive", "resolution": "1ms"}, ("1767225600", "1767312000")),
        ({"format": "unix", "end": "inclusive", "resolution": "1s"}, ("1767225600", "1767311999")),
        ({"end": "inclusive", "resolution": "1s"}, ("2026-01-01T00:00:00Z", "2026-01-01T23:59:59Z")),
        (
            {"format": "unix_ms", "end": "inclusive", "resolution": "1ms"},
            ("1767225600000", "1767311999999"),
        ),
        ({"format": "unix", "start": "exclusive"}, ("1767225599", "1767312000")),
        ({"format": "%Y%m%d%H%M%S"}, ("20260101000000", "20260102000000")),
    ):
        incremental = {"start_param": "a", "end_param": "b", **keys}
        timed = {"every": "1d", "start": "2026-01-01"}
        read(source(api, "plain", incremental=incremental, window=timed), window)
        assert (api.asked[-1].query["a"], api.asked[-1].query["b"]) == expected
    for keys, range in (
        ({"end": "inclusive"}, "[2026-01-01T00:00:00Z,2026-01-01T23:59:59.999999Z]"),
        ({"range": "{start}..{end}", "format": "date"}, "2026-01-01..2026-01-02"),
    ):
        incremental = {"range_param": "updatedDate", **keys}
        read(source(api, "plain", incremental=incremental, window=timed), window)
        assert api.asked[-1].query == {"updatedDate": range}


def test_windows_of_parents(api: Api) -> None:
    """The parent is asked for a window, and its children whole."""
    window = Window.between(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
    api.records = [{"id": day, "changed": f"2026-01-0{day}T12:00:00Z"} for day in (1, 2)]
    api.comments = {"1": [{"n": 1}], "2": [{"n": 2}]}
    parent = {"path": "/plain", "incremental": {"start_param": "since", "end_param": "until"}}
    timed = {"every": "1d", "start": "2026-01-01"}
    assert read(source(api, "posts/{id}/comments", parent=parent, window=timed), window) == [{"n": 1}]
    assert api.asked[-1].query == {}


def test_one_record(api: Api) -> None:
    """A resource that is one record and not a list; an object where a list should be is no record."""
    api.raw = '{"data": {"id": 1.50}}'
    opened = reading.Api(source(api, "raw", data_selector="data", single_record=True))
    assert list(opened.pages(None)) == [['{"id": 1.50}']]
    opened.close()
    with pytest.raises(SourceUnavailable) as caught:
        read(source(api, "raw", data_selector="data"))
    assert 'no list at "data"' in caught.value.reason
    for raw, selector, remedy in (
        ('{"meta": {}, "data": {"items": []}}', "items", "The answer has lists at data.items."),
        ("[]", "data", "The answer itself is a list"),
        ('{"error": "busy"}', "items", "The answer has no list"),
    ):
        api.raw = raw
        with pytest.raises(SourceUnavailable) as caught:
            read(source(api, "raw", data_selector=selector))
        assert remedy in caught.value.remedy


def test_no_key_in_the_log(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    key = {"type": "api_key", "api_key": secret("s3cret-key"), "name": "key", "location": "query"}
    read(source(api, "linked", auth=key))
    assert "s3cret" not in caplog.text


def test_days_need_windows_of_days(api: Api) -> None:
    incremental = {"start_param": "a", "end_param": "b", "format": "date"}
    timed = {"every": "6h", "start": "2026-01-01"}
    opened = reading.Api(source(api, "plain", incremental=incremental, window=timed))
    with pytest.raises(SourceRefused, match="refuses"):
        opened.check()
    opened.close()


def test_children_of_parents(api: Api) -> None:
    """Each parent is asked for once, side by side, also when pages repeat it."""
    api.records = [{"id": number, "title": f"t{number}", "price": "x"} for number in (*range(10), 9, 0)]
    api.comments = {str(post): [{"n": post * 10 + at} for at in range(3)] for post in range(10)}
    api.delay = 0.02
    declared = source(
        api,
        "posts/{id}/comments",
        parent={"path": "/linked", **WAYS["linked"], "include": {"post": "id", "none": "nothing"}},
    )
    found = read(declared)
    expected = [{"post": post, "none": None, "n": post * 10 + at} for post in range(10) for at in range(3)]
    assert sorted(found, key=lambda each: each["n"]) == expected
    assert api.most_at_a_time > 1
    del api.comments["5"]
    with pytest.raises(SourceRefused, match="refuses") as caught:
        read(declared)
    assert "404" in caught.value.reason
    assert declared.parent is not None
    skipping = declared.model_copy(
        update={"parent": declared.parent.model_copy(update={"on_missing": "skip"})}
    )
    assert len(read(skipping)) == 27


def test_a_parent_without_the_field(api: Api) -> None:
    with pytest.raises(SourceRefused) as caught:
        read(source(api, "posts/{name}/comments", parent={"path": "/plain"}))
    assert 'no usable value at "name"' in caught.value.reason


def test_not_faster_than_allowed(api: Api) -> None:
    began = time.monotonic()
    read(source(api, "offset", requests_per_second=50))
    assert time.monotonic() - began >= (len(api.asked) - 1) / 50 * 0.9


# --- credentials ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["linked", "offset"])
@pytest.mark.parametrize(
    ("auth", "allowed"),
    [
        (
            {"type": "bearer", "token": secret("s3cret-token")},
            lambda asked: asked.headers.get("Authorization") == "Bearer s3cret-token",
        ),
        (
            {"type": "api_key", "api_key": secret("s3cret-key"), "name": "X-Key"},
            lambda asked: asked.headers.get("X-Key") == "s3cret-key",
        ),
        (
            {"type": "api_key", "api_key": secret("s3cret-key"), "name": "key", "location": "query"},
            lambda asked: asked.query.get("key") == "s3cret-key",
        ),
        (
            {"type": "http_basic", "username": "me", "password": secret("s3cret-word")},
            lambda asked: asked.headers.get("Authorization") == basic("me", "s3cret-word"),
        ),
    ],
    ids=["bearer", "key_in_header", "key_in_query", "basic"],
)
def test_credentials(api: Api, way: str, auth: dict[str, Any], allowed: Any) -> None:
    """Each page is asked for with them, and no message holds them."""
    api.allowed = allowed
    declared = source(api, way, auth=auth)
    assert len(read(declared)) == 10
    assert "s3cret" not in f"{declared} {declared!r} {declared.model_dump()} {declared.fingerprint}"
    api.allowed = lambda asked: False
    with pytest.raises(SourceRefused) as caught:
        read(declared)
    assert "401" in caught.value.reason
    assert "credentials" in caught.value.remedy
    assert "s3cret" not in f"{caught.value!r} {caught.value.reason} {caught.value.as_json()}"


def oauth(api: Api, **keys: Any) -> dict[str, Any]:
    return {
        "type": "oauth2_client_credentials",
        "access_token_url": f"{api.url}/token",
        "client_id": "me",
        "client_secret": secret("client secret 1"),
        **keys,
    }


@pytest.mark.parametrize("way", ["linked", "offset"])
def test_a_token_that_is_refused_in_mid_run(api: Api, way: str) -> None:
    """Another one is fetched, once, and every record comes once."""
    api.allowed = lambda asked: asked.headers["Authorization"] == f"Bearer {api.token}"

    def expire(handler: Any) -> None:
        api.token = "none that was given"
        status(401)(handler)

    api.faults = [(lambda asked: "6" in (asked.query.get("at"), asked.query.get("offset")), expire)]
    assert [record["id"] for record in read(source(api, way, auth=oauth(api)))] == list(range(10))
    assert api.tokens_given == 2
    assert redact("token 2") == "********"


def test_a_token_that_expires(api: Api) -> None:
    """It is not used beyond its time."""
    api.allowed = lambda asked: asked.headers["Authorization"] == f"Bearer {api.token}"
    api.lasts = 0
    assert len(read(source(api, "linked", auth=oauth(api)))) == 10
    assert api.tokens_given == 4


def test_a_server_of_tokens_that_fails(api: Api) -> None:
    is_token = lambda asked: asked.path == "/token"  # noqa: E731
    api.faults = [(is_token, status(503)), (is_token, body(b"{}"))]
    assert len(read(source(api, "linked", auth=oauth(api)))) == 10
    with pytest.raises(SourceRefused) as caught:
        read(source(api, "linked", auth=oauth(api, client_secret=secret("another one"))))
    assert "invalid_client" in caught.value.reason
    assert "another one" not in f"{caught.value.reason} {caught.value.message}"


def test_another_server_is_never_asked(api: Api) -> None:
    """Neither by a link in a page, in a header, nor by a redirection: a key would go along."""
    key = {"type": "api_key", "api_key": secret("s3cret-key")}
    with serving(Api()) as other:
        items = {"items": [{"id": 1}], "paging": {"next": f"{other.url}/body"}}
        link = {"Link": f'<{other.url}/linked>; rel="next"'}
        for way, fault in (
            ("body", body(json.dumps(items).encode())),
            ("linked", body(b"[]", **link)),
            ("plain", status(302, Location=f"{other.url}/plain")),
        ):
            api.faults = [(lambda asked: True, fault)]
            with pytest.raises(PagesAstray, match="lead astray") as caught:
                read(source(api, way, auth=key))
            assert "another server" in caught.value.reason
        assert other.asked == []
    api.faults = [(lambda asked: True, status(302, Location="/plain?q=1"))]
    assert len(read(source(api, "plain", auth=key))) == 10
    assert api.asked[-1].headers["X-Api-Key"] == "s3cret-key"


# --- an API that does not behave -----------------------------------------------------------------

PASSING: dict[str, Fault] = {
    "500": status(500),
    "503": status(503, Retry_After="0"),
    "429": status(429, Retry_After="Thu, 01 Jan 2026 00:00:00 GMT"),
    "timeout": silence,
    "reset": reset,
    "empty": body(b""),
    "html": body(b"<html>busy</html>"),
    "cut": body(b'{"items": [{"id": 1}, {"id'),
    "not_a_list": body(b'{"error": "try again"}'),
    "not_utf8": body(b'{"items": [{"id": "\xff"}]}'),
    "no_number": body(b'{"items": [{"id": NaN}]}'),
}


def is_second(asked: Asked) -> bool:
    return asked.query.get("at") == "3" or asked.query.get("offset") == "3"


@pytest.mark.parametrize("way", ["body", "offset"])
@pytest.mark.parametrize("name", PASSING)
def test_faults_that_pass(api: Api, way: str, name: str) -> None:
    """Each is met twice, on the second page: it is asked for again, and every record is there once."""
    api.faults = [(is_second, PASSING[name])] * 2
    found = read(source(api, way, timeout="200ms" if name == "timeout" else "5s"))
    assert [record["id"] for record in found] == list(range(10))
    assert api.faults == []


@pytest.mark.parametrize("way", ["body", "offset"])
@pytest.mark.parametrize("name", [name for name in PASSING if name != "timeout"])
def test_faults_that_stay(api: Api, way: str, name: str) -> None:
    """It is asked again as often as declared, and the failure is told: never an end of pages."""
    api.always = [(is_second, PASSING[name])]
    with pytest.raises(SourceUnavailable, match="cannot be read") as caught:
        read(source(api, way))
    assert "(asked 3 times)" in caught.value.reason
    assert sum(map(is_second, api.asked)) == 3


def test_a_server_that_wants_to_rest(api: Api) -> None:
    """Nobody asks before the time is over; one that wants hours is left alone."""
    api.faults = [(is_second, status(429, Retry_After="1"))]
    began = time.monotonic()
    assert len(read(source(api, "body"))) == 10
    assert time.monotonic() - began >= 1
    api.always = [(is_second, status(429, Retry_After="7200"))]
    with pytest.raises(SourceUnavailable) as caught:
        read(source(api, "body"))
    assert "(asked 1 time)" in caught.value.reason


def test_what_is_refused_is_not_asked_again(api: Api) -> None:
    with pytest.raises(SourceRefused, match="refuses") as caught:
        read(source(api, "nothing"))
    assert "no such thing" in caught.value.reason
    assert len(api.asked) == 1


@pytest.mark.parametrize("back", ["0", "3"])
@pytest.mark.parametrize("way", ["body", "linked", "cursor"])
def test_links_that_lead_back(api: Api, way: str, back: str) -> None:
    """To itself, or in a circle: an error, not an endless run."""
    items = [{"id": 4}]
    page: Any = {
        "body": {"items": items, "paging": {"next": f"/body?at={back}"}},
        "cursor": {"data": {"items": items}, "next": 3},
        "linked": items,
    }[way]
    link = {"Link": f'</linked?at={back}>; rel="next"'} if way == "linked" else {}
    api.always = [(is_second, body(json.dumps(page).encode(), **link))]
    with pytest.raises(PagesAstray, match="lead astray"):
        read(source(api, way, query={"at": "0"} if way != "cursor" else {}))
    assert len(api.asked) <= 4


def test_links_that_are_none(api: Api) -> None:
    page = {"items": [], "paging": {"next": "http://[nowhere"}}
    api.faults = [(lambda asked: True, body(json.dumps(page).encode()))]
    with pytest.raises(PagesAstray) as caught:
        read(source(api, "body"))
    assert "is no address" in caught.value.reason


@pytest.mark.parametrize("text", ['{"items": 1, "items": [2]}', '{"items": [1], "items": [2, 3]}'])
def test_a_list_that_stands_there_twice(api: Api, text: str) -> None:
    """Which of them is meant nobody knows."""
    api.raw = text
    with pytest.raises(SourceUnavailable) as caught:
        read(source(api, "raw", data_selector="items"))
    assert "twice" in caught.value.reason


@pytest.mark.parametrize("way", ["offset", "page"])
def test_an_api_that_does_not_know_its_pages(api: Api, way: str) -> None:
    api.always = [(lambda asked: True, body(b'{"items": [{"id": 1}]}'))]
    with pytest.raises(PagesAstray) as caught:
        read(source(api, way))
    assert "same page twice" in caught.value.reason


@pytest.mark.parametrize("way", ["offset_total", "page_total"])
def test_a_page_that_is_empty_too_early(api: Api, way: str) -> None:
    """The API says that there is more: an empty list is no end."""
    empty = body(b'{"items": [], "total": 10, "pages": 4}')
    api.always = [(lambda asked: asked.query.get("offset") == "3" or asked.query.get("page") == "2", empty)]
    with pytest.raises(PagesAstray) as caught:
        read(source(api, way))
    assert "A page is empty after" in caught.value.reason


@pytest.mark.parametrize("way", ["offset_total", "page_total"])
def test_a_list_that_shrinks(api: Api, way: str) -> None:
    """What stands behind moves up, and past the reader: what was read is void."""

    def shrink(handler: Any) -> None:
        del api.records[:4]
        status(500)(handler)

    api.faults = [(lambda asked: is_second(asked) or asked.query.get("page") == "2", shrink)]
    with pytest.raises(Restart, match="some may have been missed"):
        read(source(api, way))


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_a_status_of_its_own(api: Api, way: str) -> None:
    """Some APIs answer 404 where there is nothing: it must be declared."""
    api.records = []
    api.always = [(lambda asked: True, status(404))]
    assert read(source(api, way, empty_status=404)) == []
    for declared in ({}, {"empty_status": 410}):
        with pytest.raises(SourceRefused):
            read(source(api, way, **declared))


@pytest.mark.parametrize("way", ["offset", "page"])
def test_the_end_is_a_status_of_its_own(api: Api, way: str) -> None:
    """Beyond the last page there is nothing."""
    api.always = [
        (lambda asked: asked.query.get("offset") == "10" or asked.query.get("page") == "5", status(404))
    ]
    assert [record["id"] for record in read(source(api, way, empty_status=404))] == list(range(10))


@pytest.mark.parametrize("way", ["linked", "body", "cursor", "offset_total", "page_total"])
def test_a_page_in_the_middle_that_is_not_found(api: Api, way: str) -> None:
    """The page before said that there is more: that is a loss, whatever is declared."""
    api.always = [
        (lambda asked: is_second(asked) or asked.query.get("page") == "2", status(404)),
    ]
    with pytest.raises((SourceRefused, PagesAstray)):
        read(source(api, way, empty_status=404))


@pytest.mark.parametrize(
    "paginator", [{"type": "single_page"}, {"type": "json_link", "next_url_path": "paging.nxt"}]
)
def test_a_next_link_that_nobody_reads(api: Api, paginator: dict[str, str]) -> None:
    """A slip in the path, or no paginator at all: three of ten records are no success."""
    first = {"items": [{"id": 1}], "paging": {"next": f"{api.url}/body?at=3"}}
    api.always = [(lambda asked: True, body(json.dumps(first).encode()))]
    with pytest.raises(PagesAstray) as caught:
        read(source(api, "body", paginator=paginator))
    assert "/body?at=3" in caught.value.reason


def test_a_next_page_that_nobody_declared(api: Api) -> None:
    with pytest.raises(PagesAstray) as caught:
        read(source(api, "linked", paginator={"type": "single_page"}))
    assert "would be left out" in caught.value.reason


def test_a_child_that_fails_ends_all(api: Api) -> None:
    """No thread is left behind, and nobody waits for ever."""
    api.comments = {str(post): [{"n": post}] for post in range(10)}
    api.always = [(lambda asked: asked.path == "/posts/4/comments", status(500))]
    with pytest.raises(SourceUnavailable):
        read(source(api, "posts/{id}/comments", parent={"path": "/plain"}))
    opened = reading.Api(source(api, "posts/{id}/comments", parent={"path": "/plain"}))
    pages = iter(opened.pages(None))
    next(pages)
    del pages  # whoever stops listening ends the reading
    opened.close()


def test_the_page() -> None:
    """What the page on APIs shows in its tables is right."""
    page = Path(__file__).parents[3] / "docs/how-to/load-from-a-rest-api.md"
    shown = re.findall(r"^\| `(\{type: .*?\})`", page.read_text(encoding="utf-8"), re.MULTILINE)
    kinds = set()
    for text in shown:
        found = YAML(typ="safe").load(text.replace("…", "https://example.org"))
        values = {
            key: secret(value) if isinstance(value, str) and value.startswith("$") else value
            for key, value in found.items()
        }
        role = "paginator" if f"{found['type']}" in PAGINATORS else "auth"
        HttpSource.model_validate({"url": "https://example.org", role: values})
        kinds.add(found["type"])
    assert kinds == {*PAGINATORS, "bearer", "api_key", "http_basic", "oauth2_client_credentials"}


def test_errors_survive_pickling() -> None:
    for error in (PagesAstray("u", "why"), SourceRefused("u", "why", status=404)):
        again: EskerError = pickle.loads(pickle.dumps(error))
        assert (again.message, again.remedy) == (error.message, error.remedy)


def test_mistakes_are_told_with_their_place() -> None:
    for keys, told in (
        ({"url": "ftp://a"}, "must begin with http"),
        ({"path": "/a?b=c"}, "write the path alone"),
        ({"path": "/a/{id}"}, "there is no parent:"),
        ({"parent": {"path": "/a"}}, "must name a field of the parent"),
        ({"window": {"every": "1d", "start": "2026-01-01"}}, "incremental: must say"),
        ({"incremental": {"start_param": "a", "end_param": "b"}}, "needs window:"),
        ({"incremental": {"start_param": "a"}}, "end_param: is missing"),
        ({"incremental": {"range_param": "a", "end_param": "b"}}, "gets both ends already"),
        ({"incremental": {"range_param": "a", "range": "{start}"}}, "name both ends"),
        (
            {"incremental": {"start_param": "a", "end_param": "b", "range": "{start},{end}"}},
            "which is missing",
        ),
        ({"headers": {"authorization": "x"}}, "write them as auth:"),
        ({"auth": {"type": "bearer", "token": "plain"}}, "stands here as text"),
    ):
        with pytest.raises(ValueError, match=told):
            HttpSource.model_validate({"url": "https://example.org", **keys})
