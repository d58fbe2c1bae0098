"""Google Cloud Storage, as users declare it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from esker.project.addresses import web_address
from esker.project.declaration import Declaration


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

    @field_validator("endpoint")
    @classmethod
    def _whole_address(cls, endpoint: str | None) -> str | None:
        return web_address(endpoint, "credentials") if endpoint is not None else None

    def why_not_for_tables(self) -> str | None:
        """Return why tables cannot be kept in it, if so."""
        if self.anonymous and self.endpoint is None:
            return "nobody writes tables without a key; leave out anonymous:"
        return None
