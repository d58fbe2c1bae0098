"""An S3 object store, as users declare it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from esker.project.addresses import web_address
from esker.project.declaration import Declaration, MistakeAt
from esker.project.secrets import Secret


class S3Store(Declaration):
    """Files in Amazon S3, or in a server that speaks its language (SeaweedFS, MinIO, Ceph…)."""

    type: Literal["s3"]
    endpoint: str | None = Field(
        None, description="Address of the server, `http://host:8333`. Default: Amazon's own."
    )
    region: str | None = Field(
        None,
        description="Default: what the AWS environment or profile says; with an `endpoint`, `us-east-1`.",
    )
    path_style: bool = Field(
        False,
        description="Address buckets as `host/bucket` instead of `bucket.host`; most servers of your own "
        "need that.",
    )
    access_key: Secret | None = Field(
        None, description="Default: what the AWS environment, profile or machine role says, or the catalog."
    )
    secret_key: Secret | None = None
    session_token: Secret | None = Field(None, description="Of temporary keys.")
    anonymous: bool = Field(False, description="Read public files, without any key. For sources only.")

    @field_validator("endpoint")
    @classmethod
    def _whole_address(cls, endpoint: str | None) -> str | None:
        return web_address(endpoint, "access_key: and secret_key:") if endpoint is not None else None

    @model_validator(mode="after")
    def _whole_key(self) -> S3Store:
        if (self.access_key is None) != (self.secret_key is None):
            given, lacking = (
                ("access_key", "secret_key") if self.access_key is not None else ("secret_key", "access_key")
            )
            raise MistakeAt((given,), f"{given} is of no use without {lacking}")
        if self.session_token is not None and self.access_key is None:
            raise MistakeAt(
                ("session_token",), "session_token is of no use without access_key and secret_key"
            )
        if self.anonymous and self.access_key is not None:
            raise MistakeAt(("anonymous",), "write keys, or anonymous: true, not both")
        return self
