"""Search servers, as users declare them."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field, field_validator, model_validator

from esker.project.addresses import web_address
from esker.project.declaration import Declaration, Duration, MistakeAt
from esker.project.secrets import Secret


class SearchConnection(Declaration):
    """What all search servers share."""

    hosts: tuple[str, ...] = Field(
        min_length=1,
        description="Addresses of the cluster, `http://host:9200`. The next is asked when one is silent.",
    )
    user: str | None = Field(None, description="With `password`.")
    password: Secret | None = None
    api_key: Secret | None = Field(None, description="In place of user and password, as the server gave it.")
    ca_file: str | None = Field(
        None, description="Certificates to trust, a PEM file. Default: those of the machine."
    )
    gzip: bool = Field(True, description="Pack what is sent.")
    timeout: Duration = Field(timedelta(seconds=60), description="How long an answer is waited for.")
    retries: int = Field(
        8, ge=0, description="How often what failed is sent again, ever later, without any of it arriving."
    )

    @field_validator("hosts")
    @classmethod
    def _whole_addresses(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(web_address(host, "user: and password:") for host in hosts)

    @model_validator(mode="after")
    def _one_way_in(self) -> SearchConnection:
        if (self.user is None) != (self.password is None):
            given, lacking = ("user", "password") if self.user is not None else ("password", "user")
            raise MistakeAt((given,), f"{given} is of no use without {lacking}")
        if self.api_key is not None and self.user is not None:
            raise MistakeAt(("api_key",), "user and api_key are two ways in: write one")
        return self


class ElasticsearchConnection(SearchConnection):
    """An Elasticsearch cluster."""

    type: Literal["elasticsearch"]


class OpensearchConnection(SearchConnection):
    """An OpenSearch cluster."""

    type: Literal["opensearch"]
