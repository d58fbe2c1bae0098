"""Google Cloud Storage, as users declare it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from esker.project.addresses import web_address
from esker.project.declaration import Declaration, MistakeAt
from esker.project.secrets import Secret


class GcsStore(Declaration):
    """Files in Google Cloud Storage. Keys are Google's own default credentials: a file that
    GOOGLE_APPLICATION_CREDENTIALS names, `gcloud auth application-default login`, or the machine's."""

    type: Literal["gcs"]
    endpoint: str | None = Field(None, description="Address of another server. Default: Google's own.")
    project: str | None = Field(
        None, description="The project that new files are counted to. Default: what the credentials say."
    )
    anonymous: bool = Field(
        False, description="Read public files, or use an emulator at `endpoint`, without any key."
    )

    hmac_key: Secret | None = Field(
        None,
        description="For readers that take nothing but an HMAC key (DuckDB). Esker itself does not use it.",
    )
    hmac_secret: Secret | None = Field(None, description="The secret of `hmac_key`.")

    @field_validator("endpoint")
    @classmethod
    def _whole_address(cls, endpoint: str | None) -> str | None:
        return web_address(endpoint, "credentials") if endpoint is not None else None

    @model_validator(mode="after")
    def _whole_key(self) -> GcsStore:
        if (self.hmac_key is None) != (self.hmac_secret is None):
            missing = "hmac_key" if self.hmac_key is None else "hmac_secret"
            raise MistakeAt((missing,), "hmac_key: and hmac_secret: belong together")
        if self.anonymous and self.hmac_key is not None:
            raise MistakeAt(("anonymous",), "write hmac_key:, or anonymous: true, not both")
        return self

    def why_not_for_tables(self) -> str | None:
        """Return why tables cannot be kept in it, if so."""
        if self.anonymous and self.endpoint is None:
            return "nobody writes tables without a key; leave out anonymous:"
        return None
