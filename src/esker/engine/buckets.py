"""Object stores that files are read from, as this process reaches them."""

from __future__ import annotations

from pyarrow import fs

from esker.engine.catalogs.s3 import keys_of
from esker.engine.file_systems import azure_file_system, gcs_file_system, s3_file_system
from esker.project.sources.store_address import StoreAddress
from esker.project.stores import AzureStore, FileStore, GcsStore, S3Store


def file_system(address: StoreAddress, declared: FileStore | None) -> fs.FileSystem:
    """Return the file system of an address; without a declaration, with what the environment says.

    Raises ProfileUnusable.
    """
    match declared:
        case S3Store():
            return _s3(declared)
        case GcsStore():
            return gcs_file_system(declared.endpoint, anonymous=declared.anonymous)
        case AzureStore():
            return _azure(declared)
    if address.kind == "s3":
        return s3_file_system(None, None, path_style=False, keys=(None, None, None))
    if address.kind == "gcs":
        return gcs_file_system(None, anonymous=False)
    assert address.account is not None, "the source was checked"
    return azure_file_system(address.account, None)


def _s3(store: S3Store) -> fs.FileSystem:
    keys = keys_of(store)
    return s3_file_system(
        store.endpoint,
        store.signing_region,
        path_style=store.path_style,
        keys=(keys.access_key, keys.secret_key, keys.session_token) if keys else (None, None, None),
        anonymous=store.anonymous,
        role=store.role,
        external_id=store.external_id,
    )


def _azure(store: AzureStore) -> fs.FileSystem:
    access: dict[str, str | None] = {}
    for name in ("account_key", "sas_token", "client_secret"):
        if (value := getattr(store, name)) is not None:
            access[name] = value.get_secret_value()
    if store.client_secret is not None:
        access |= {"tenant_id": store.tenant_id, "client_id": store.client_id}
    return azure_file_system(store.account, store.endpoint, **access)
