"""How AWS is reached, wherever a project file says it: keys, a profile, a role, or what the machine has."""

from __future__ import annotations

from typing import Annotated, Protocol

from pydantic import Field, SecretStr, StringConstraints

from esker.project.declaration import MistakeAt
from esker.project.secrets import Secret

AccessKey = Annotated[
    Secret | None,
    Field(description="Default: what the AWS environment, profile or machine role says, or the catalog."),
]
SessionToken = Annotated[Secret | None, Field(description="Of temporary keys.")]
Profile = Annotated[
    str | None,
    Field(
        description="A profile with keys in `~/.aws/credentials`, or where AWS_SHARED_CREDENTIALS_FILE is."
    ),
]
Role = Annotated[
    Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/.+$")] | None,
    Field(description="A role that is assumed with what the AWS environment has: `arn:aws:iam::…:role/…`."),
]
ExternalId = Annotated[str | None, Field(description="What the role wants to hear, with `role`.")]


class AwsAccess(Protocol):
    """A declaration with these keys."""

    @property
    def access_key(self) -> SecretStr | None: ...
    @property
    def secret_key(self) -> SecretStr | None: ...
    @property
    def session_token(self) -> SecretStr | None: ...
    @property
    def profile(self) -> str | None: ...
    @property
    def role(self) -> str | None: ...
    @property
    def external_id(self) -> str | None: ...


def check_one_way_in(access: AwsAccess) -> None:
    """Raise MistakeAt for half a key, and for two ways in."""
    if (access.access_key is None) != (access.secret_key is None):
        given, lacking = (
            ("access_key", "secret_key") if access.access_key is not None else ("secret_key", "access_key")
        )
        raise MistakeAt((given,), f"{given} is of no use without {lacking}")
    if access.session_token is not None and access.access_key is None:
        raise MistakeAt(("session_token",), "session_token is of no use without access_key and secret_key")
    if access.external_id is not None and access.role is None:
        raise MistakeAt(("external_id",), "external_id is of no use without role")
    ways = [name for name in ("access_key", "profile", "role") if getattr(access, name) is not None]
    if len(ways) > 1:
        raise MistakeAt((ways[1],), "access_key, profile and role are three ways in: write one")
