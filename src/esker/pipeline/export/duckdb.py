"""A short program that reads tables with DuckDB."""

from __future__ import annotations

from esker.pipeline.export.program import code, expression
from esker.pipeline.export.reader import Exported, Lake, Settings
from esker.project.catalogs import GlueCatalog, RestCatalog, S3TablesCatalog, SqliteCatalog
from esker.project.stores import AzureStore, GcsStore, S3Store
from esker.project.stores.s3 import USUAL_REGION
from esker.project.warehouses import store_kind


def export(lake: Lake) -> Exported:
    """Return the program. Raises CannotExport."""
    settings = Settings.empty("${{{}}}")
    namespace, table = lake.example
    secrets = [*_store(lake, settings)]
    match lake.catalog:
        case SqliteCatalog(path=path):
            body = _of_sqlite(str(lake.project.path(path).resolve()), lake.name, namespace, table)
        case RestCatalog() as catalog:
            secrets += _way_in(lake, catalog, settings)
            body = _attached(lake, catalog.warehouse or "", f"ENDPOINT '{catalog.uri}'", namespace, table)
        case S3TablesCatalog(uri=None) as catalog:
            body = _attached(lake, catalog.warehouse, "ENDPOINT_TYPE s3_tables", namespace, table)
        case GlueCatalog(endpoint=None) as catalog:
            body = _attached(lake, catalog.account or ":", "ENDPOINT_TYPE glue", namespace, table)
        case S3TablesCatalog() | GlueCatalog():
            raise lake.refused(
                "DuckDB signs requests to Amazon's own servers only: it reads service and region from the "
                "address"
            )
        case _:
            raise lake.refused(
                f"DuckDB cannot open a catalog of type {lake.catalog.type}; where PyIceberg can, read the "
                "tables with that (esker export pyiceberg)"
            )
    text = code(
        f'"""Read tables of the catalog "{lake.name}" with DuckDB: pip install duckdb"""',
        "",
        "import os",
        "import sqlite3" if isinstance(lake.catalog, SqliteCatalog) else None,
        "",
        "import duckdb",
        "",
        "",
        "def text(value):",
        '    """Return a value as a text of SQL."""',
        '''    return "'" + value.replace("'", "''") + "'"''',
        "",
        "",
        "connection = duckdb.connect()",
        'for extension in ("avro", "iceberg", "httpfs"):',
        "    connection.install_extension(extension)",
        "    connection.load_extension(extension)",
        *secrets,
        *body,
    )
    return Exported(f"read_{lake.name}_duckdb.py", text, tuple(settings.used))


def _of_sqlite(database: str, catalog: str, namespace: str, table: str) -> list[str]:
    """Return lines for a catalog that DuckDB cannot open: it tells where each table's metadata is."""
    return [
        "",
        "",
        "def location(namespace, table):",
        '    """Return where the metadata of a table is, now."""',
        f"    database = sqlite3.connect({f'file:{database}?mode=ro'!r}, uri=True)",
        "    try:",
        "        [found] = database.execute(",
        '            "SELECT metadata_location FROM iceberg_tables "',
        '            "WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",',
        f"            ({catalog!r}, namespace, table),",
        "        ).fetchone()",
        "    finally:",
        "        database.close()",
        "    return found",
        "",
        "",
        f"found = text(location({namespace!r}, {table!r}))",
        'print(connection.sql(f"SELECT * FROM iceberg_scan({found}) LIMIT 10").fetchall())',
    ]


def _attached(lake: Lake, warehouse: str, options: str, namespace: str, table: str) -> list[str]:
    name = f'"{lake.name}"."{namespace}"."{table}"'
    attach = f"ATTACH '{warehouse}' AS \"{lake.name}\" (TYPE iceberg, {options})"
    return [
        f"connection.execute({attach!r})",
        f"print(connection.sql({f'SELECT * FROM {name} LIMIT 10'!r}).fetchall())",
    ]


def _way_in(lake: Lake, catalog: RestCatalog, settings: Settings) -> list[str]:
    """Return the line by which DuckDB knows what to show to the server."""
    if catalog.token is not None:
        return [_secret("catalog", "iceberg", {"TOKEN": expression(settings.secret(catalog.token))})]
    if catalog.credential is not None:
        whole = expression(settings.secret(catalog.credential))
        parts = {
            "CLIENT_ID": f'{whole}.partition(":")[0]',
            "CLIENT_SECRET": f'{whole}.partition(":")[2]',
            "OAUTH2_SERVER_URI": repr(catalog.token_server),
        }
        return [_secret("catalog", "iceberg", parts)]
    if catalog.user is not None or catalog.sigv4 is not None:
        raise lake.refused("DuckDB shows a REST catalog a token, or what it gets one for, and nothing else")
    return []


def _store(lake: Lake, settings: Settings) -> list[str]:
    if lake.store is None or (isinstance(lake.catalog, SqliteCatalog) and not store_kind(lake.location)):
        return []
    match lake.store:
        case S3Store() as store:
            parts: dict[str, str] = {}
            if store.access_key is not None and store.secret_key is not None:
                parts["KEY_ID"] = expression(settings.secret(store.access_key))
                parts["SECRET"] = expression(settings.secret(store.secret_key))
            if store.session_token is not None:
                parts["SESSION_TOKEN"] = expression(settings.secret(store.session_token))
            parts |= _server(store.endpoint)
            parts["REGION"] = repr(store.signing_region or USUAL_REGION)
            parts["URL_STYLE"] = repr("path" if store.path_style else "vhost")
            if "KEY_ID" not in parts:
                parts["PROVIDER"] = repr("credential_chain")
            return [_secret("store", "s3", parts)]
        case GcsStore() as store:
            parts = {"URL_STYLE": repr("path"), **_server(store.endpoint)}
            if store.hmac_key is not None and store.hmac_secret is not None:
                parts["KEY_ID"] = expression(settings.secret(store.hmac_key))
                parts["SECRET"] = expression(settings.secret(store.hmac_secret))
            elif not store.anonymous:
                raise lake.refused(
                    "DuckDB opens Google's store with an HMAC key only: write one into the store, as "
                    "hmac_key: and hmac_secret:"
                )
            return [_secret("store", "gcs", parts)]
        case AzureStore():
            raise lake.refused("DuckDB's Iceberg reads no tables in Azure")


def _server(endpoint: str | None) -> dict[str, str]:
    if endpoint is None:
        return {}
    scheme, _, address = endpoint.partition("://")
    return {"ENDPOINT": repr(address), "USE_SSL": repr(str(scheme == "https").lower())}


def _secret(name: str, kind: str, parts: dict[str, str]) -> str:
    """Return the line that makes a secret of DuckDB's; the parts are code."""
    options = ", ".join(f"{key} {{text({value})}}" for key, value in parts.items())
    statement = f"CREATE SECRET {name} (TYPE {kind}, {options})"
    # Quotes of the code within are double ones, or none of the f-string's own.
    return f"connection.execute(f'''{statement}''')"
