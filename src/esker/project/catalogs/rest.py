"""A server that speaks Iceberg's REST protocol, as users declare it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from esker.project.addresses import web_address
from esker.project.catalogs.client_properties import ClientProperties, not_twice
from esker.project.catalogs.safe import Safe
from esker.project.declaration import Declaration, MistakeAt, Name
from esker.project.secrets import Secret

_OWN_PROPERTIES = frozenset(
    (
        "type",
        "uri",
        "warehouse",
        "credential",
        "token",
        "oauth2-server-uri",
        "scope",
        "rest.auth.basic.username",
        "rest.auth.basic.password",
        "rest.auth.type",
        "header.x-iceberg-access-delegation",
    )
)
_WAYS = ("credential", "token", "user", "sigv4")


class SigV4(Declaration):
    """Requests are signed as AWS wants it, with the keys, or the profile, of the store."""

    region: str = Field(min_length=1, description="The region that requests are signed for.")
    service: str = Field(
        "execute-api", min_length=1, description="The service: `glue`, `s3tables`, or that of a gateway."
    )


class RestCatalog(Safe):
    """A server that speaks Iceberg's REST protocol: many machines, many engines."""

    type: Literal["rest"] = "rest"
    name: Name | None = Field(None, description="As for sqlite.")
    uri: str = Field(description="Address of the server, without `/v1`.")
    warehouse: str | None = Field(
        None, description="What the server calls the warehouse: a name, or an address such as `s3://lake`."
    )
    credential: Secret | None = Field(
        None, description="`client id:client secret`, which the server exchanges for tokens (OAuth2)."
    )
    token: Secret | None = Field(None, description="A token that is sent as it is, instead of `credential`.")
    oauth2_server_uri: str | None = Field(
        None,
        description="Where `credential` is exchanged for tokens. Default: the server itself, "
        "`<uri>/v1/oauth/tokens`.",
    )
    scope: str | None = Field(None, description="What the tokens are asked for. Default: `catalog`.")
    user: str | None = Field(None, description="Instead of these, with `password`: sent with each request.")
    password: Secret | None = None
    sigv4: SigV4 | None = Field(None, description="Instead of these: requests are signed as AWS wants it.")
    vended_credentials: bool = Field(
        False, description="Ask the server for keys to each table's files. The store has none then."
    )
    store: Name | None = Field(
        None, description="The connection that has its tables' files. Default: the project's `store`."
    )
    properties: ClientProperties = Field(
        default_factory=dict,
        description="Further properties of Iceberg's REST client, as they are: `header.X-Team: museum`…",
    )

    @field_validator("uri", "oauth2_server_uri")
    @classmethod
    def _whole_address(cls, address: str | None) -> str | None:
        instead = "credential:, token:, or user: and password:"
        return web_address(address, instead) if address is not None else None

    @field_validator("uri")
    @classmethod
    def _without_version(cls, uri: str) -> str:
        if uri.endswith("/v1"):
            raise ValueError("the client adds /v1 itself; leave it out")
        return uri

    @field_validator("properties")
    @classmethod
    def _not_twice(cls, properties: dict[str, str]) -> dict[str, str]:
        return not_twice(properties, _OWN_PROPERTIES)

    @model_validator(mode="after")
    def _one_way_in(self) -> RestCatalog:
        if self.credential is not None and self.token is not None:
            raise MistakeAt(("token",), "write credential or token, not both")
        ways = [name for name in _WAYS if getattr(self, name) is not None]
        if len(ways) > 1:
            raise MistakeAt((ways[1],), f"{ways[0]} and {ways[1]} are two ways in: write one")
        if (self.user is None) != (self.password is None):
            given, lacking = ("user", "password") if self.user is not None else ("password", "user")
            raise MistakeAt((given,), f"{given} is of no use without {lacking}")
        for name in ("oauth2_server_uri", "scope"):
            if getattr(self, name) is not None and self.credential is None:
                raise MistakeAt((name,), f"{name} is of no use without credential")
        return self

    @property
    def token_server(self) -> str:
        """Where `credential` is exchanged for tokens."""
        return self.oauth2_server_uri or f"{self.uri}/v1/oauth/tokens"
