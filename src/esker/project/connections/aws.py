"""Amazon's services, as users declare them."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field, field_validator, model_validator

from esker.project.addresses import web_address
from esker.project.aws import AccessKey, ExternalId, Profile, Role, SessionToken, check_one_way_in
from esker.project.declaration import Declaration, Duration
from esker.project.secrets import Secret


class AwsConnection(Declaration):
    """An account of Amazon's, for topics (SNS) and queues (SQS)."""

    type: Literal["aws"]
    region: str | None = Field(None, description="Default: what the topic or queue, or the environment says.")
    endpoint: str | None = Field(
        None, description="Address of an emulator, `http://host:5000`. Default: Amazon's own."
    )
    access_key: AccessKey = None
    secret_key: Secret | None = None
    session_token: SessionToken = None
    profile: Profile = None
    role: Role = None
    external_id: ExternalId = None
    timeout: Duration = Field(timedelta(seconds=30), description="How long an answer is waited for.")
    retries: int = Field(8, ge=0, description="How often a request that failed is repeated, ever later.")

    @field_validator("endpoint")
    @classmethod
    def _whole_address(cls, endpoint: str | None) -> str | None:
        return web_address(endpoint, "access_key: and secret_key:") if endpoint is not None else None

    @model_validator(mode="after")
    def _one_way_in(self) -> AwsConnection:
        check_one_way_in(self)
        return self
