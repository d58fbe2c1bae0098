"""How one page of an API leads to the next."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from esker.project.declaration import Declaration


class SinglePagePaginator(Declaration):
    """There is one page. An answer whose `Link` header names another is refused."""

    type: Literal["single_page"] = "single_page"


class HeaderLinkPaginator(Declaration):
    """The header `Link` leads to the next page."""

    type: Literal["header_link"] = "header_link"
    links_next_key: str = Field("next", min_length=1, description="The link's `rel`.")


class JsonLinkPaginator(Declaration):
    """A link in the body leads to the next page; on the last page it is null, empty or missing."""

    type: Literal["json_link"] = "json_link"
    next_url_path: str = Field("next", min_length=1, description="Where the link stands: `paging.next`.")


class CursorPaginator(Declaration):
    """A value in the body asks for the next page; on the last page it is null, empty or missing."""

    type: Literal["cursor"] = "cursor"
    cursor_path: str = Field("cursors.next", min_length=1, description="Where the value stands.")
    cursor_param: str = Field("cursor", min_length=1, description="The query parameter that it becomes.")


class OffsetPaginator(Declaration):
    """Pages begin after so many records. The last one is empty, or ends where the total says."""

    type: Literal["offset"] = "offset"
    limit: int = Field(
        100, ge=1, description="Records in a page. Fewer are noticed, and nothing is left out."
    )
    offset: int = Field(0, ge=0, description="The first page's.")
    offset_param: str = Field("offset", min_length=1)
    limit_param: str | None = Field("limit", min_length=1, description="null when the API takes none.")
    total_path: str | None = Field(
        None, min_length=1, description="Where the body says how many records there are."
    )


class PageNumberPaginator(Declaration):
    """Pages are counted. The last one is empty, or the one that the total says."""

    type: Literal["page_number"] = "page_number"
    base_page: int = Field(1, ge=0, description="The first page's number.")
    page_param: str = Field("page", min_length=1)
    total_path: str | None = Field(
        None, min_length=1, description="Where the body says how many pages there are."
    )


Paginator = Annotated[
    SinglePagePaginator
    | HeaderLinkPaginator
    | JsonLinkPaginator
    | CursorPaginator
    | OffsetPaginator
    | PageNumberPaginator,
    Field(discriminator="type"),
]
