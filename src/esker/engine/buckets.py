"""Object stores that files are read from, as this process reaches them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs

from esker.engine.store import s3_file_system
from esker.project.sources.store_address import StoreAddress
from esker.project.stores import AzureStore, FileStore, GcsStore, S3Store

_USUAL_REGION = "us-east-1"
_PATIENCE = timedelta(minutes=1)


def file_system(address: StoreAddress, declared: FileStore | None) -> fs.FileSystem:
    """Return the file system of an address; without a declaration, with what the environment says."""
    match declared:
        case S3Store():
            return _s3(declared)
        case GcsStore():
            return _gcs(declared)
        case AzureStore():
            return _azure(declared)
    if address.kind == "s3":
        return s3_file_system(None, None, path_style=False, keys=(None, None, None))
    if address.kind == "gcs":
        return fs.GcsFileSystem(retry_time_limit=_PATIENCE)
    return fs.AzureFileSystem(address.account)


def _s3(store: S3Store) -> fs.FileSystem:
    keys = (store.access_key, store.secret_key, store.session_token)
    access, secret, token = (key.get_secret_value() if key is not None else None for key in keys)
    region = store.region or (_USUAL_REGION if store.endpoint is not None else None)
    return s3_file_system(
        store.endpoint,
        region,
        path_style=store.path_style,
        keys=(access, secret, token),
        anonymous=store.anonymous,
    )


def _gcs(store: GcsStore) -> fs.FileSystem:
    options: dict[str, Any] = {"anonymous": store.anonymous, "retry_time_limit": _PATIENCE}
    if store.endpoint is not None:
        parts = urlsplit(store.endpoint)
        options |= {"scheme": parts.scheme, "endpoint_override": parts.netloc}
    return fs.GcsFileSystem(**options)


def _azure(store: AzureStore) -> fs.FileSystem:
    options: dict[str, Any] = {}
    if store.endpoint is not None:
        parts = urlsplit(store.endpoint)
        for service in ("blob", "dfs"):
            options |= {
                f"{service}_storage_authority": parts.netloc,
                f"{service}_storage_scheme": parts.scheme,
            }
    for name in ("account_key", "sas_token", "client_secret"):
        if (value := getattr(store, name)) is not None:
            options[name] = value.get_secret_value()
    if store.client_secret is not None:
        options |= {"tenant_id": store.tenant_id, "client_id": store.client_id}
    return fs.AzureFileSystem(store.account, **options)
