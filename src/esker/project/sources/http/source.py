"""A REST API as a source, as users declare it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field, field_validator, model_validator

from esker.project.addresses import web_address
from esker.project.declaration import Declaration, Duration, MistakeAt, Texts
from esker.project.sources.http.auth import Auth
from esker.project.sources.http.paginators import Paginator, SinglePagePaginator
from esker.project.sources.source import SourceDeclaration
from esker.project.sources.windows import WindowSettings

PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
"""A field of a parent's record, in a path or a query: `{id}`, `{owner.id}`."""


_RESOLUTIONS = {
    "1s": timedelta(seconds=1),
    "1ms": timedelta(milliseconds=1),
    "1us": timedelta(microseconds=1),
}


def _told(format: str) -> timedelta:
    """Return the least difference that a format can tell."""
    is_finest = format == "iso" or "%f" in format
    return _RESOLUTIONS["1us" if is_finest else "1ms" if format == "unix_ms" else "1s"]


class Incremental(Declaration):
    """Query parameters that ask for a window of time."""

    start_param: str | None = Field(None, min_length=1, description="Gets the window's beginning.")
    end_param: str | None = Field(None, min_length=1, description="Gets the window's end.")
    range_param: str | None = Field(
        None, min_length=1, description="Gets both, for APIs that take a range in one parameter."
    )
    range: str = Field("[{start},{end}]", description="How `range_param` is written.")
    start: Literal["inclusive", "exclusive"] = Field(
        "inclusive", description="Whether the API gives records of the very moment in `start_param`."
    )
    end: Literal["inclusive", "exclusive"] = Field(
        "exclusive", description="Whether the API gives records of the very moment in `end_param`."
    )
    format: str = Field(
        "iso",
        min_length=1,
        description="`iso` (2026-11-01T12:00:00Z), `date` (windows are whole days then), `unix` (seconds), "
        "`unix_ms`, or a pattern such as `%Y-%m-%d %H:%M:%S`. All are UTC.",
    )
    resolution: Literal["1s", "1ms", "1us"] | None = Field(
        None,
        description="The least by which two times of the API differ. With `end: inclusive`, a window is "
        "asked for up to this much before its end. By default 1us, if `format` can tell that; else an "
        "inclusive end is the window's own, and what is exactly there is read twice.",
    )

    @field_validator("format")
    @classmethod
    def _known(cls, format: str) -> str:
        if format not in ("iso", "date", "unix", "unix_ms") and "%S" not in format:
            raise ValueError("write iso, date, unix, unix_ms, or a pattern that tells seconds (%S)")
        return format

    @field_validator("range")
    @classmethod
    def _both_ends(cls, range: str) -> str:
        if "{start}" not in range or "{end}" not in range:
            raise ValueError("name both ends: [{start},{end}]")
        return range

    @model_validator(mode="after")
    def _one_way(self) -> Incremental:
        if self.range_param is not None:
            for name in ("start_param", "end_param"):
                if getattr(self, name) is not None:
                    raise MistakeAt((name,), "range_param: gets both ends already")
            return self
        if "range" in self.model_fields_set:
            raise MistakeAt(("range",), "range: is how range_param: is written, which is missing")
        for name in ("start_param", "end_param"):
            if getattr(self, name) is None:
                raise ValueError(f"{name}: is missing; an API that takes one parameter has range_param:")
        return self

    @property
    def is_exact(self) -> bool:
        """No record lies in two windows, and none between two."""
        is_half_open = self.start == "inclusive" and self.end == "exclusive"
        return is_half_open or self.format == "date" or _told(self.format) <= self._least

    def bounds(self, since: datetime, until: datetime) -> tuple[datetime, datetime]:
        """Return what a half-open window is for the API."""
        start = since - self._least if self.start == "exclusive" else since
        # An end that is told too early would leave out the last records of a window.
        end = until - self._least if self.end == "inclusive" and self.is_exact else until
        return start, end

    @property
    def _least(self) -> timedelta:
        return _RESOLUTIONS[self.resolution or "1us"]

    def query(self, start: str, end: str) -> dict[str, str]:
        """Return the parameters of a window."""
        if self.range_param is not None:
            return {self.range_param: self.range.replace("{start}", start).replace("{end}", end)}
        assert self.start_param is not None
        assert self.end_param is not None
        return {self.start_param: start, self.end_param: end}


class Resource(Declaration):
    """What an API is asked for."""

    path: str = Field("", description="Below the source's `url`: `/posts/{id}/comments`.")
    query: Texts = Field(default_factory=dict, description="Query parameters.")
    paginator: Paginator = Field(default_factory=SinglePagePaginator)
    data_selector: str = Field(
        "$",
        min_length=1,
        description="Where the list of records stands in the body: `data.items`, or `$` when the body is it.",
    )
    single_record: bool = Field(False, description="`data_selector` leads to one record, not to a list.")
    empty_status: int | None = Field(
        None,
        ge=400,
        le=499,
        description="The status by which the API says that there are no records, such as 404: of a window "
        "in which nothing happened, or beyond the last page. Otherwise a page that is not found is an error.",
    )
    incremental: Incremental | None = Field(None, description="How it is asked for a window of time.")

    @field_validator("path")
    @classmethod
    def _path_only(cls, path: str) -> str:
        if "?" in path or "#" in path or "://" in path:
            raise ValueError("write the path alone: its server is url:, its parameters are query:")
        return path if not path or path.startswith("/") else f"/{path}"

    def placeholders(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the fields of a parent's record that it names, with where."""
        for name in PLACEHOLDER.findall(self.path):
            yield ("path",), name
        for key, value in self.query.items():
            for name in PLACEHOLDER.findall(value):
                yield ("query", key), name


class ParentResource(Resource):
    """A resource whose records say what to ask for: once for each of them."""

    include: dict[str, str] = Field(
        default_factory=dict,
        description="Fields of the parent that each record gets, by the name they get: `{post_id: id}`.",
    )
    on_missing: Literal["error", "skip"] = Field(
        "error", description="When the API answers 404 for a parent that it has just named."
    )


class HttpSource(Resource, SourceDeclaration):
    """Read the records of a REST API: all of them in each run, or by windows of time."""

    type: Literal["http"] = "http"
    url: str = Field(description="The API's base address. No other server is ever asked.")
    auth: Auth | None = None
    headers: Texts = Field(default_factory=dict, description="Further headers of each request.")
    parent: ParentResource | None = Field(
        None, description="A resource for each of whose records this one is asked for."
    )
    window: WindowSettings | None = Field(
        None, description="Ask by windows of time. Without it, all is read in each run."
    )
    parallel: int = Field(4, ge=1, le=64, description="Most requests at a time, where the API allows it.")
    requests_per_second: float | None = Field(None, gt=0, description="Not more than this many.")
    timeout: Duration = Field(timedelta(seconds=60), description="How long an answer is waited for.")
    retries: int = Field(5, ge=0, description="How often a request that failed is repeated, ever later.")

    @property
    def reads(self) -> str:
        return f"{self.url}{self.path}"

    @property
    def fingerprint(self) -> str:
        return f"http {self.reads}{f' of {self.parent.path}' if self.parent else ''}"

    def check_mode(self, mode: str) -> None:
        for place, resource in (((), self), (("parent",), self.parent)):
            incremental = resource.incremental if resource is not None else None
            if mode == "append" and incremental is not None and not incremental.is_exact:
                end = "end" if incremental.end == "inclusive" else "start"
                raise MistakeAt(
                    ("source", *place, "incremental", end),
                    f"records at the very {end} of a window would be added twice; say how finely the API's "
                    "times differ (resolution: 1s), or use a mode with a key",
                )

    @field_validator("url")
    @classmethod
    def _whole_address(cls, url: str) -> str:
        if "?" in url or "#" in url:
            raise ValueError("write the address alone: its parameters are query:")
        return web_address(url, "auth:")

    @field_validator("headers")
    @classmethod
    def _no_credentials(cls, headers: dict[str, str]) -> dict[str, str]:
        for name in headers:
            if name.lower() in ("authorization", "proxy-authorization", "cookie"):
                raise MistakeAt((name,), f"{name} holds credentials: write them as auth:")
        return headers

    @model_validator(mode="after")
    def _parent_is_used(self) -> HttpSource:
        named = list(self.placeholders())
        if self.parent is None and named:
            place, name = named[0]
            raise MistakeAt(place, f"{{{name}}} is a field of a parent's record, and there is no parent:")
        if self.parent is not None:
            if not named:
                raise MistakeAt(("parent",), "path: or query: must name a field of the parent, such as {id}")
            for place, name in self.parent.placeholders():
                raise MistakeAt(("parent", *place), f"{{{name}}}: a parent has no parent")
        return self

    @model_validator(mode="after")
    def _windows_are_asked_for(self) -> HttpSource:
        is_timed = self.incremental is not None or (self.parent and self.parent.incremental) is not None
        if self.window is not None and not is_timed:
            raise MistakeAt(("window",), "incremental: must say which parameters ask for a window")
        if self.window is None and is_timed:
            raise MistakeAt(("incremental",), "incremental: needs window:, which says what is asked for")
        if self.window is not None and self.window.start is None:
            raise MistakeAt(("window",), "start: is missing, and an API cannot be asked where it begins")
        return self
