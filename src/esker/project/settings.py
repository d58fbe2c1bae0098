"""Where a project runs and remembers: Spark and the state database, as users declare them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from esker.project.declaration import Declaration, MistakeAt, Texts
from esker.project.secrets import Secret, only_from_environment

Memory = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*[mgMG]$")]


_SECRET_SETTING = re.compile(r"(?i)secret|password|token|credential|(access|account)[._-]?key")
_OWN_SETTINGS = frozenset(
    (
        "spark.sql.ansi.enabled",
        "spark.sql.casesensitive",
        "spark.sql.session.timezone",
        "spark.sql.files.ignorecorruptfiles",
        "spark.sql.files.ignoremissingfiles",
        "spark.driver.memory",
        "spark.driver.extraclasspath",
        "spark.master",
    )
)


def secrets_from_environment(settings: object) -> object:
    """Return settings by key; raise MistakeAt if one that must be secret stands in the file as text."""
    for key, value in settings.items() if isinstance(settings, dict) else ():
        if _SECRET_SETTING.search(str(key)):
            try:
                only_from_environment(value)
            except ValueError as error:
                raise MistakeAt((key,), str(error)) from None
    return settings


class SparkSettings(Declaration):
    """Where Spark runs. Without any setting: on this machine, sized to it."""

    master: str = Field(
        "local[*]",
        description="local[*], local[4], spark://host:7077, yarn or k8s://https://host:443.",
    )
    driver_memory: Memory | None = Field(
        None, description="Memory of the driver, such as 4g. Default: half of the machine's, at most 8g."
    )
    conf: Texts = Field(default_factory=dict, description="Further Spark settings, as they are.")

    @field_validator("conf", mode="before")
    @classmethod
    def _secrets_from_environment(cls, conf: object) -> object:
        return secrets_from_environment(conf)

    @field_validator("conf")
    @classmethod
    def _harmless(cls, conf: dict[str, str]) -> dict[str, str]:
        for key in conf:
            if key.lower() in _OWN_SETTINGS:
                raise MistakeAt((key,), f'"{key}" is set by Esker: with another value rows could be lost')
        return conf

    @field_validator("master")
    @classmethod
    def _known_master(cls, master: str) -> str:
        if not re.fullmatch(r"local(\[(\*|\d+)\])?|spark://.+|yarn|k8s://.+", master):
            raise ValueError(
                f'unknown master "{master}"; write local[*], local[4], spark://host:7077, yarn or k8s://…'
            )
        return master

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")


class StateSettings(Declaration):
    """The state database: run history and leases. It never decides what is in a table."""

    url: str = Field(
        "sqlite:///.esker/state.db",
        description="`sqlite:///path` or `postgresql://host:5432/database`, without credentials.",
    )
    user: str | None = Field(None, description="User of the database.")
    password: Secret | None = None

    @field_validator("url")
    @classmethod
    def _without_credentials(cls, url: str) -> str:
        if not url.startswith(("sqlite:///", "postgresql://")):
            raise ValueError("the url must begin with sqlite:/// or postgresql://")
        if "@" in url or "password=" in url:
            raise ValueError("the url holds credentials; write them as user: and password: ${NAME}")
        return url
