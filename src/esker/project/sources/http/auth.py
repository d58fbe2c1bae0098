"""How an API knows who asks."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, field_validator

from esker.project.addresses import web_address
from esker.project.declaration import Declaration, Duration, Texts
from esker.project.secrets import Secret


class BearerAuth(Declaration):
    """A token in the header `Authorization`."""

    type: Literal["bearer"] = "bearer"
    token: Secret


class ApiKeyAuth(Declaration):
    """A key in a header, or in the query."""

    type: Literal["api_key"] = "api_key"
    api_key: Secret
    name: str = Field("X-Api-Key", min_length=1, description="Of the header or of the query parameter.")
    location: Literal["header", "query"] = "header"


class BasicAuth(Declaration):
    """A name and a password."""

    type: Literal["http_basic"] = "http_basic"
    username: str
    password: Secret


class ClientCredentialsAuth(Declaration):
    """OAuth 2 client credentials: tokens are fetched, and fetched anew when they expire or are refused."""

    type: Literal["oauth2_client_credentials"] = "oauth2_client_credentials"
    access_token_url: str = Field(description="Where tokens are given.")
    client_id: str
    client_secret: Secret
    access_token_request_data: Texts = Field(
        default_factory=dict, description="What else the request for a token holds, such as a scope."
    )
    credentials_in: Literal["body", "header"] = Field(
        "body", description="Where the request for a token holds client_id and client_secret."
    )
    default_token_expiration: Duration = Field(
        timedelta(hours=1), description="How long a token is good that does not say so."
    )

    @field_validator("access_token_url")
    @classmethod
    def _whole_address(cls, url: str) -> str:
        return web_address(url, "client_id: and client_secret:")


Auth = Annotated[
    BearerAuth | ApiKeyAuth | BasicAuth | ClientCredentialsAuth,
    Field(discriminator="type"),
]
