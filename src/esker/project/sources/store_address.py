"""Addresses of files in object stores: `s3://bucket/…`, `gs://bucket/…`, `abfss://container@account…/…`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

StoreKind = Literal["s3", "gcs", "azure"]
_KINDS: dict[str, StoreKind] = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "az": "azure",
    "abfs": "azure",
    "abfss": "azure",
}
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._$-]*")
_AZURE_HOST = re.compile(r"([a-z0-9]{3,24})\.(?:dfs|blob)\.[a-z.]+")


@dataclass(frozen=True)
class StoreAddress:
    """Where files of a store are."""

    scheme: str
    kind: StoreKind
    path: str
    """Bucket and pattern, as the store writes them: `bucket/orders/*.csv`."""
    account_host: str | None = None
    """Azure: `account.dfs.core.windows.net`, where the address names it."""

    @property
    def account(self) -> str | None:
        """The account's name, where the address names it."""
        return self.account_host.partition(".")[0] if self.account_host else None


def store_address(text: str) -> StoreAddress | None:
    """Return an address in a store; None for a path on a disk. Raises ValueError."""
    scheme, separator, rest = text.partition("://")
    if not separator or scheme == "file":
        return None
    kind = _KINDS.get(scheme)
    if kind is None:
        raise ValueError(
            f'files cannot be read from "{scheme}://"; write a path, s3://, gs://, abfss:// or az://'
        )
    bucket, _, key = rest.partition("/")
    host = None
    if kind == "azure" and "@" in bucket:
        bucket, _, host = bucket.partition("@")
        if not _AZURE_HOST.fullmatch(host):
            raise ValueError(
                f'"{host}" is no account; write abfss://container@account.dfs.core.windows.net/…'
            )
    elif scheme in ("abfs", "abfss"):
        raise ValueError("write abfss://container@account.dfs.core.windows.net/…, or az://container/…")
    if not _BUCKET.fullmatch(bucket):
        what = "container" if kind == "azure" else "bucket"
        raise ValueError(f'"{bucket}" is no name of a {what}, and patterns match only behind it')
    if not key:
        raise ValueError(f"write which files: {scheme}://{rest.rstrip('/')}/*.csv")
    if any(part in ("", ".", "..") for part in key.split("/")):
        raise ValueError("a name between two / is empty, or nothing but dots")
    # Hadoop's name for the same store: a file has one name in the record, however it is written.
    return StoreAddress("s3" if kind == "s3" else scheme, kind, f"{bucket}/{key}", host)
