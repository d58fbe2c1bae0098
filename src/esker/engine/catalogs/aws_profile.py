"""Keys that stand in a profile of AWS's own files."""

from __future__ import annotations

import configparser
import os
from dataclasses import dataclass, field
from pathlib import Path

from esker.errors import ProfileUnusable
from esker.project.secrets import remember_secret


@dataclass(frozen=True)
class AwsKeys:
    """A pair of keys, with a token if they are temporary."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


def profile_keys(profile: str) -> AwsKeys:
    """Return the keys of a profile, and mask them from now on. Raises ProfileUnusable."""
    told: dict[str, str] = {}
    for path, section in ((_config(), f"profile {profile}"), (_credentials(), profile)):
        found = configparser.RawConfigParser()
        try:
            found.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            raise ProfileUnusable(profile, f"{path} cannot be read: {type(error).__name__}.") from None
        # The default profile stands in both files under its plain name.
        for name in (section, "default" if profile == "default" else section):
            if found.has_section(name):
                told |= dict(found.items(name))
    if not told:
        raise ProfileUnusable(profile, f"There is no such profile in {_credentials()} and {_config()}.")
    access_key, secret_key = told.get("aws_access_key_id"), told.get("aws_secret_access_key")
    if not access_key or not secret_key:
        raise ProfileUnusable(profile, "The profile holds no keys, but another way to get them.")
    for secret in (access_key, secret_key, token := told.get("aws_session_token")):
        if secret is not None:
            remember_secret(secret)
    return AwsKeys(access_key, secret_key, token)


def _credentials() -> Path:
    return Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials").expanduser()


def _config() -> Path:
    return Path(os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config").expanduser()
