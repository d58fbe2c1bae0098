"""An OAI-PMH source, as users declare it."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field, field_validator, model_validator

from esker.project.addresses import web_address
from esker.project.declaration import Duration, MistakeAt
from esker.project.secrets import Secret
from esker.project.sources.source import SourceDeclaration
from esker.project.sources.windows import WindowSettings


class OaiPmhSource(SourceDeclaration):
    """Harvest the records of an OAI-PMH feed by windows of time.

    Columns: `id`, `last_modified` (the datestamp), `deleted`, `sets`, and `content`, the metadata as XML.
    """

    type: Literal["oai_pmh"] = "oai_pmh"
    url: str = Field(description="The feed's base address.")
    metadata_prefix: str = Field("oai_dc", min_length=1, description="Format of the records.")
    set: str | None = Field(None, min_length=1, description="Only records of this set.")
    window: WindowSettings
    user: str | None = Field(None, description="For feeds that ask for a name and a password.")
    password: Secret | None = None
    timeout: Duration = Field(timedelta(seconds=60), description="How long an answer is waited for.")
    retries: int = Field(5, ge=0, description="How often a request that failed is repeated, ever later.")

    @property
    def reads(self) -> str:
        return f"{self.url} ({self.metadata_prefix}{f', set {self.set}' if self.set else ''})"

    @property
    def fingerprint(self) -> str:
        return f"oai_pmh {self.url} {self.metadata_prefix} {self.set or ''}".rstrip()

    @field_validator("url")
    @classmethod
    def _whole_address(cls, url: str) -> str:
        return web_address(url, "user: and password:")

    @model_validator(mode="after")
    def _whole_login(self) -> OaiPmhSource:
        if (self.user is None) != (self.password is None):
            raise MistakeAt(("user" if self.user else "password",), "user and password belong together")
        return self
