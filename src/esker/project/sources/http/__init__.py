"""A REST API, as users declare it. Names follow the `rest_api` source of dlt where it has them."""

from esker.project.sources.http.auth import ApiKeyAuth, Auth, BasicAuth, BearerAuth, ClientCredentialsAuth
from esker.project.sources.http.paginators import (
    CursorPaginator,
    HeaderLinkPaginator,
    JsonLinkPaginator,
    OffsetPaginator,
    PageNumberPaginator,
    Paginator,
    SinglePagePaginator,
)
from esker.project.sources.http.source import HttpSource, Incremental, ParentResource, Resource

__all__ = [
    "ApiKeyAuth",
    "Auth",
    "BasicAuth",
    "BearerAuth",
    "ClientCredentialsAuth",
    "CursorPaginator",
    "HeaderLinkPaginator",
    "HttpSource",
    "Incremental",
    "JsonLinkPaginator",
    "OffsetPaginator",
    "PageNumberPaginator",
    "Paginator",
    "ParentResource",
    "Resource",
    "SinglePagePaginator",
]
