"""Where catalogs keep the files of their tables: a folder, or a place in a store."""

from __future__ import annotations

from typing import Literal

StoreKind = Literal["s3", "gcs", "azure"]
_KINDS: dict[str, StoreKind] = {"s3": "s3", "s3a": "s3", "gs": "gcs", "abfs": "azure", "abfss": "azure"}
SCHEMES: dict[StoreKind, str] = {
    "s3": "s3://bucket/path",
    "gcs": "gs://bucket/path",
    "azure": "abfss://container@account.dfs.core.windows.net/path",
}
"""How a place in each kind of store is written."""


def scheme_of(warehouse: str | None) -> str | None:
    """Return what stands before `://`; None for a folder, and for a name that only a server knows."""
    scheme, separator, _ = (warehouse or "").partition("://")
    return scheme if separator else None


def store_kind(warehouse: str | None) -> StoreKind | None:
    """Return the kind of store that a warehouse is in; None for everything else."""
    return _KINDS.get(scheme_of(warehouse) or "")


def only_known_place(warehouse: str, *further: str) -> str:
    """Return a warehouse that Esker itself must reach; raise ValueError for an unknown scheme."""
    scheme = scheme_of(warehouse)
    if scheme is not None and scheme not in (*_KINDS, "file", *further):
        known = ", ".join((*SCHEMES.values(), *(f"{each}://…" for each in further)))
        raise ValueError(f'tables cannot be kept in "{scheme}://"; write a folder, {known}')
    if store_kind(warehouse) == "azure" and "@" not in warehouse:
        raise ValueError(f"write {SCHEMES['azure']}")
    return warehouse
