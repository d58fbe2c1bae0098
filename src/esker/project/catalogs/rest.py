"""A server that speaks Iceberg's REST protocol, as users declare it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from esker.project.addresses import web_address
from esker.project.declaration import Declaration, MistakeAt, Name, Texts
from esker.project.secrets import Secret
from esker.project.settings import secrets_from_environment

_OWN_PROPERTIES = frozenset(("type", "uri", "warehouse", "credential", "token", "oauth2-server-uri", "scope"))


class RestCatalog(Declaration):
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
    store: Name | None = Field(
        None, description="The connection that has its tables' files. Default: the project's `store`."
    )
    properties: Texts = Field(
        default_factory=dict,
        description="Further properties of Iceberg's REST client, as they are: `header.X-Team: museum`…",
    )

    @field_validator("uri", "oauth2_server_uri")
    @classmethod
    def _whole_address(cls, address: str | None) -> str | None:
        return web_address(address, "credential: or token:") if address is not None else None

    @field_validator("uri")
    @classmethod
    def _without_version(cls, uri: str) -> str:
        if uri.endswith("/v1"):
            raise ValueError("the client adds /v1 itself; leave it out")
        return uri

    @field_validator("properties", mode="before")
    @classmethod
    def _secrets_from_environment(cls, properties: object) -> object:
        return secrets_from_environment(properties)

    @field_validator("properties")
    @classmethod
    def _not_twice(cls, properties: dict[str, str]) -> dict[str, str]:
        for key in properties:
            if key.lower() in _OWN_PROPERTIES:
                raise MistakeAt((key,), f'"{key}" has a key of its own: {key.replace("-", "_")}')
        return properties

    @model_validator(mode="after")
    def _one_way_in(self) -> RestCatalog:
        if self.credential is not None and self.token is not None:
            raise MistakeAt(("token",), "write credential or token, not both")
        for name in ("oauth2_server_uri", "scope"):
            if getattr(self, name) is not None and self.credential is None:
                raise MistakeAt((name,), f"{name} is of no use without credential")
        return self
