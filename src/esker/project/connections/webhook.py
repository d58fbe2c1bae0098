"""A server that is told by HTTP, as users declare it."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field, field_validator

from esker.project.addresses import web_address
from esker.project.declaration import Declaration, Duration, MistakeAt, Texts
from esker.project.secrets import Secret
from esker.project.sources.http import Auth

_OWN_HEADERS = ("content-type", "content-length", "idempotency-key", "host")
_CREDENTIALS = ("authorization", "proxy-authorization", "cookie")


class Signature(Declaration):
    """A signature by which the server knows who sent a body, and that nobody altered it."""

    secret: Secret = Field(description="Known to both sides. From the environment or .env: ${NAME}.")
    header: str = Field(
        "X-Esker-Signature",
        min_length=1,
        description="Gets `sha256=` and the HMAC-SHA256 of the body, in hexadecimal digits.",
    )


class WebhookConnection(Declaration):
    """An address that takes JSON by POST."""

    type: Literal["webhook"]
    url: str = Field(
        description="Where to send. Only its server is ever shown: paths of webhooks are often secret."
    )
    auth: Auth | None = None
    headers: Texts = Field(default_factory=dict, description="Further headers of each request.")
    secret_headers: dict[str, Secret] = Field(
        default_factory=dict, description="Headers whose values are secrets."
    )
    signature: Signature | None = None
    timeout: Duration = Field(timedelta(seconds=30), description="How long an answer is waited for.")
    retries: int = Field(8, ge=0, description="How often a request that failed is repeated, ever later.")

    @field_validator("url")
    @classmethod
    def _whole_address(cls, url: str) -> str:
        web_address(url, "auth:")
        return url

    @field_validator("headers", "secret_headers")
    @classmethod
    def _not_its_own(cls, headers: dict[str, str]) -> dict[str, str]:
        for name in headers:
            if name.lower() in _OWN_HEADERS:
                raise MistakeAt((name,), f"{name} is set by Esker")
        return headers

    @field_validator("headers")
    @classmethod
    def _no_credentials(cls, headers: dict[str, str]) -> dict[str, str]:
        for name in headers:
            if name.lower() in _CREDENTIALS:
                raise MistakeAt((name,), f"{name} holds credentials: write them as auth: or secret_headers:")
        return headers
