"""Project Nessie by its own protocol, as users declare it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from esker.project.addresses import web_address
from esker.project.catalogs.client_properties import ClientProperties, not_twice
from esker.project.catalogs.safe import Safe
from esker.project.declaration import MistakeAt, Name
from esker.project.secrets import Secret
from esker.project.warehouses import only_known_place

_OWN = ("type", "uri", "ref", "warehouse", "authentication.type", "authentication.token")


class NessieCatalog(Safe):
    """Project Nessie by its own protocol: a catalog with branches of the whole lake."""

    type: Literal["nessie"]
    name: Name | None = Field(None, description="As for sqlite.")
    uri: str = Field(description="Address of the server with its version: `http://host:19120/api/v2`.")
    ref: str = Field("main", min_length=1, description="The branch of the lake that is written to.")
    warehouse: str = Field(
        description="Where new tables lie: a folder that every machine sees, or a place in the store."
    )
    token: Secret | None = Field(None, description="A token that is sent as it is.")
    user: str | None = Field(None, description="Instead of a token, with `password`.")
    password: Secret | None = None
    credential: Secret | None = Field(
        None, description="`client id:client secret`, exchanged for tokens at `oauth2_server_uri` (OAuth2)."
    )
    oauth2_server_uri: str | None = Field(None, description="Where `credential` is exchanged for tokens.")
    scope: str | None = Field(None, description="What the tokens are asked for.")
    store: Name | None = Field(None, description="As for rest, when the warehouse is in a store.")
    properties: ClientProperties = Field(default_factory=dict)

    @field_validator("uri", "oauth2_server_uri")
    @classmethod
    def _whole_address(cls, address: str | None) -> str | None:
        return web_address(address, "token:, or user: and password:") if address is not None else None

    @field_validator("uri")
    @classmethod
    def _with_version(cls, uri: str) -> str:
        if not uri.endswith(("/api/v1", "/api/v2")):
            raise ValueError(
                "write Nessie's own address, which ends with /api/v2; for …/iceberg take type: rest instead"
            )
        return uri

    @field_validator("warehouse")
    @classmethod
    def _place(cls, warehouse: str) -> str:
        return only_known_place(warehouse)

    @field_validator("properties")
    @classmethod
    def _not_twice(cls, properties: dict[str, str]) -> dict[str, str]:
        return not_twice(properties, _OWN)

    @model_validator(mode="after")
    def _one_way_in(self) -> NessieCatalog:
        if (self.user is None) != (self.password is None):
            given, lacking = ("user", "password") if self.user is not None else ("password", "user")
            raise MistakeAt((given,), f"{given} is of no use without {lacking}")
        ways = [name for name in ("token", "user", "credential") if getattr(self, name) is not None]
        if len(ways) > 1:
            raise MistakeAt((ways[1],), "token, user and credential are three ways in: write one")
        if (self.credential is None) != (self.oauth2_server_uri is None):
            given, lacking = (
                ("credential", "oauth2_server_uri")
                if self.credential
                else ("oauth2_server_uri", "credential")
            )
            raise MistakeAt((given,), f"{given} is of no use without {lacking}")
        if self.scope is not None and self.credential is None:
            raise MistakeAt(("scope",), "scope is of no use without credential")
        return self
