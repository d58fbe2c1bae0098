"""An S3 object store, as users declare it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from esker.project.addresses import web_address
from esker.project.aws import AccessKey, ExternalId, Profile, Role, SessionToken, check_one_way_in
from esker.project.declaration import Declaration, MistakeAt
from esker.project.secrets import Secret

USUAL_REGION = "us-east-1"
"""Amazon's own default, for requests that must name some region."""


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
    access_key: AccessKey = None
    secret_key: Secret | None = None
    session_token: SessionToken = None
    profile: Profile = None
    role: Role = None
    external_id: ExternalId = None
    anonymous: bool = Field(False, description="Read public files, without any key. For sources only.")

    @field_validator("endpoint")
    @classmethod
    def _whole_address(cls, endpoint: str | None) -> str | None:
        return web_address(endpoint, "access_key: and secret_key:") if endpoint is not None else None

    @model_validator(mode="after")
    def _one_way_in(self) -> S3Store:
        check_one_way_in(self)
        if self.anonymous and self.has_way_in:
            raise MistakeAt(("anonymous",), "write keys, or anonymous: true, not both")
        return self

    @property
    def has_way_in(self) -> bool:
        """It says itself how it is opened; otherwise the machine or the catalog does."""
        return any(way is not None for way in (self.access_key, self.profile, self.role))

    @property
    def signing_region(self) -> str | None:
        """The region that requests are signed with; None for what the AWS environment says."""
        # Servers of one's own have no regions, but requests are signed with one.
        return self.region or (USUAL_REGION if self.endpoint is not None else None)

    def why_not_for_tables(self) -> str | None:
        """Return why tables cannot be kept in it, if so."""
        return "nobody writes tables without a key; leave out anonymous:" if self.anonymous else None
