"""Object stores as Arrow's file systems, the same one for the same facts."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs

_PATIENCE = timedelta(minutes=1)
_ANSWER_SECONDS = 60
"""How long S3 may be silent before it is asked again."""


@lru_cache(maxsize=16)
def s3_file_system(
    endpoint: str | None,
    region: str | None,
    *,
    path_style: bool,
    keys: tuple[str | None, str | None, str | None],
    anonymous: bool = False,
    role: str | None = None,
    external_id: str | None = None,
) -> fs.S3FileSystem:
    """Return an S3 store, the same one for the same facts. What is None the AWS environment says."""
    access_key, secret_key, session_token = keys
    options: dict[str, Any] = {}
    if endpoint is not None:
        parts = urlsplit(endpoint)
        options = {"scheme": parts.scheme, "endpoint_override": parts.netloc + parts.path.rstrip("/")}
        options["force_virtual_addressing"] = not path_style
    if role is not None:
        options |= {"role_arn": role, "external_id": external_id, "session_name": "esker"}
    return fs.S3FileSystem(
        anonymous=anonymous,
        access_key=access_key,
        secret_key=secret_key,
        session_token=session_token,
        region=region,
        connect_timeout=10,
        request_timeout=_ANSWER_SECONDS,
        # A small file is one request then, instead of three.
        allow_delayed_open=True,
        background_writes=False,
        **options,
    )


@lru_cache(maxsize=16)
def gcs_file_system(endpoint: str | None, *, anonymous: bool) -> fs.GcsFileSystem:
    """Return Google Cloud Storage. Without `anonymous`, Google's default credentials are taken."""
    options: dict[str, Any] = {"anonymous": anonymous, "retry_time_limit": _PATIENCE}
    if endpoint is not None:
        parts = urlsplit(endpoint)
        options |= {"scheme": parts.scheme, "endpoint_override": parts.netloc}
    return fs.GcsFileSystem(**options)


@lru_cache(maxsize=16)
def azure_file_system(account: str, endpoint: str | None, **access: str | None) -> fs.AzureFileSystem:
    """Return an account of Azure's. Without any `access`, Azure's default credential is taken."""
    options: dict[str, Any] = {name: value for name, value in access.items() if value is not None}
    if "sas_token" in options:
        # Arrow puts it behind the address as it is.
        options["sas_token"] = "?" + options["sas_token"].removeprefix("?")
    if endpoint is not None:
        parts = urlsplit(endpoint)
        for service in ("blob", "dfs"):
            options |= {
                f"{service}_storage_authority": parts.netloc,
                f"{service}_storage_scheme": parts.scheme,
            }
    return fs.AzureFileSystem(account, **options)
