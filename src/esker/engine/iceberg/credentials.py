"""The keys to a table's store, as Iceberg has them: declared by the project, or handed out by the catalog."""

from __future__ import annotations

from typing import Any

from esker.engine.failures import JvmFailure
from esker.engine.iceberg.access import Access, CurrentAccess
from esker.engine.iceberg.java import each, iceberg, text_map
from esker.engine.iceberg.table_store import TableStore
from esker.engine.session import Engine
from esker.engine.store import LOCAL, Store

_WITH_CREDENTIALS = (
    "org.apache.iceberg.aws.s3.S3FileIO",
    "org.apache.iceberg.gcp.gcs.GCSFileIO",
    "org.apache.iceberg.io.ResolvingFileIO",
)


def access_of(jvm: Any, io: Any, location: str) -> Access:
    """Return what one of Iceberg's clients opens a table's files at a location with."""
    properties, client = text_map(jvm, io.properties()), str(io.getClass().getName())
    if client in _WITH_CREDENTIALS:
        # Some catalogs hand out keys by where they are good for; the narrowest place counts.
        handed_out = {one.prefix(): one.config() for one in each(io.credentials())}
        for prefix in sorted(handed_out, key=len):
            if location.startswith(prefix):
                properties |= text_map(jvm, handed_out[prefix])
    return Access(client, properties)


def expires(jvm: Any, loaded: Any) -> float | None:
    """Return when the keys expire that a table was loaded with, in seconds since 1970; None if never."""
    location = str(loaded.location())
    if LOCAL.can_reach(location):
        return None
    try:
        return access_of(jvm, loaded.io(), location).expires
    except JvmFailure:
        return None  # a client that tells no properties


def store_of(engine: Engine, catalog: str, table: str, loaded: Any, location: str) -> Store:
    """Return the store that a table's files at a location are in. `loaded` is Iceberg's object for the table.

    Of a catalog that hands out keys, the table is loaded again before they expire.
    """
    if LOCAL.can_reach(location):
        return LOCAL
    jvm: Any = engine.spark.sparkContext._jvm
    first = access_of(jvm, loaded.io(), location)

    def ask() -> Access:
        name = iceberg(jvm, "catalog.TableIdentifier").parse(table)
        return access_of(jvm, engine.iceberg_catalog(catalog).loadTable(name).io(), location)

    own = Store.of(engine.bindings[catalog].settings)
    is_own = (first.store.keys, first.store.further) == (own.keys, own.further)
    current = CurrentAccess(first, None if is_own and first.expires is None else ask)
    return TableStore.by(engine.clients, catalog, current)


def store_of_catalog(engine: Engine, catalog: str) -> Store:
    """Return the store of a catalog's tables, reached with what the project declares."""
    settings = engine.bindings[catalog].settings
    access = Access(settings.get("io-impl", "org.apache.iceberg.hadoop.HadoopFileIO"), settings)
    return TableStore.by(engine.clients, catalog, CurrentAccess(access))
