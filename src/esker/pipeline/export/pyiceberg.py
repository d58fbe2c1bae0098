"""A short program that opens a catalog with PyIceberg."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import SecretStr

from esker.pipeline.export.program import code, expression
from esker.pipeline.export.reader import Exported, Lake, Settings
from esker.project.catalogs import (
    AnyCatalog,
    GlueCatalog,
    HadoopCatalog,
    HiveCatalog,
    JdbcCatalog,
    NessieCatalog,
    RestCatalog,
    S3TablesCatalog,
    SqliteCatalog,
)
from esker.project.stores import AzureStore, GcsStore, S3Store

Add = Callable[[str, str | SecretStr | None], None]
_EXTRAS = {"sqlite": "sql-sqlite", "jdbc": "sql-postgres", "glue": "glue", "hive": "hive", "s3tables": "glue"}


def export(lake: Lake) -> Exported:
    """Return the program. Raises CannotExport."""
    settings = Settings.empty("${{{}}}")
    opened = catalog_code(lake, settings)
    namespace, table = lake.example
    files = "adlfs" if isinstance(lake.store, AzureStore) else None
    extras = ",".join(filter(None, ("pyarrow", files, _EXTRAS.get(lake.catalog.type))))
    text = code(
        f'"""Read tables of the catalog "{lake.name}".',
        "",
        f'pip install "pyiceberg[{extras}]"',
        '"""',
        "",
        "import os",
        "from urllib.parse import quote" if "quote(" in opened else None,
        "",
        "from pyiceberg.catalog import load_catalog",
        "",
        opened,
        f"table = catalog.load_table({f'{namespace}.{table}'!r})",
        "print(table.scan(limit=10).to_arrow().to_pylist())",
    )
    return Exported(f"read_{lake.name}.py", text, tuple(settings.used))


def catalog_code(lake: Lake, settings: Settings) -> str:
    """Return the lines that open the catalog. Raises CannotExport."""
    values: dict[str, str] = {}

    def add(name: str, value: str | SecretStr | None) -> None:
        if isinstance(value, SecretStr):
            values[name] = expression(settings.secret(value))
        elif value is not None:
            values[name] = repr(value)

    match lake.catalog:
        case SqliteCatalog(path=path):
            add("type", "sql")
            add("uri", f"sqlite:///{lake.project.path(path).resolve()}")
            add("warehouse", _folder(lake))
            add("init_catalog_tables", "false")
        case JdbcCatalog() as catalog:
            add("type", "sql")
            values["uri"] = _postgresql(catalog, settings)
            add("warehouse", _folder(lake))
            add("init_catalog_tables", "false")
        case RestCatalog() as catalog:
            add("type", "rest")
            add("uri", catalog.uri)
            add("warehouse", catalog.warehouse)
            values |= _way_in(catalog, settings)
            if catalog.sigv4 is not None:
                _signed(catalog.sigv4.region, catalog.sigv4.service, add)
        case S3TablesCatalog() as catalog:
            add("type", "rest")
            add("uri", catalog.address)
            add("warehouse", catalog.warehouse)
            _signed(catalog.region, "s3tables", add)
        case GlueCatalog() as catalog:
            add("type", "glue")
            add("glue.id", catalog.account)
            add("glue.endpoint", catalog.endpoint)
        case HiveCatalog() as catalog:
            add("type", "hive")
            add("uri", catalog.uri)
        case NessieCatalog():
            raise lake.refused(
                "PyIceberg does not speak Nessie's own protocol; where the server also answers at …/iceberg, "
                "declare that address as a connection of type rest"
            )
        case HadoopCatalog():
            raise lake.refused("PyIceberg has no catalog of folders")
    _store(lake, add)
    lines = "".join(f"        {name!r}: {value},\n" for name, value in values.items())
    return f"catalog = load_catalog(\n    {lake.name!r},\n    **{{\n{lines}    }},\n)"


def _way_in(catalog: RestCatalog, settings: Settings) -> dict[str, str]:
    """Return what is shown to a REST catalog, as code."""
    if catalog.token is not None:
        return {"token": expression(settings.secret(catalog.token))}
    if catalog.user is not None and catalog.password is not None:
        password = expression(settings.secret(catalog.password))
        basic = f"{{'username': {catalog.user!r}, 'password': {password}}}"
        return {"auth": f"{{'type': 'basic', 'basic': {basic}}}"}
    if catalog.credential is None:
        return {}
    credential = expression(settings.secret(catalog.credential))
    found = {"credential": credential, "oauth2-server-uri": repr(catalog.token_server)}
    return found | ({"scope": repr(catalog.scope)} if catalog.scope is not None else {})


def _postgresql(catalog: JdbcCatalog, settings: Settings) -> str:
    """Return the address of the database with user and password, as code."""
    server = catalog.url.removeprefix("jdbc:postgresql://")
    who = catalog.user or ""
    if catalog.password is None:
        return repr(f"postgresql+psycopg2://{who}{'@' if who else ''}{server}")
    password = f'quote({expression(settings.secret(catalog.password))}, safe="")'
    return f"{f'postgresql+psycopg2://{who}:'!r} + {password} + {f'@{server}'!r}"


def _folder(lake: Lake) -> str:
    return lake.location if ":" in lake.location else f"file://{lake.location}"


def _signs(catalog: AnyCatalog) -> bool:
    return isinstance(catalog, S3TablesCatalog) or (
        isinstance(catalog, RestCatalog) and catalog.sigv4 is not None
    )


def _signed(region: str, service: str, add: Add) -> None:
    add("rest.sigv4-enabled", "true")
    add("rest.signing-region", region)
    add("rest.signing-name", service)


def _store(lake: Lake, add: Add) -> None:
    match lake.store:
        case S3Store() as store:
            add("s3.endpoint", store.endpoint)
            add("s3.region", store.signing_region)
            if store.endpoint is not None and not store.path_style:
                add("s3.force-virtual-addressing", "true")
            add("s3.access-key-id", store.access_key)
            add("s3.secret-access-key", store.secret_key)
            add("s3.session-token", store.session_token)
            if _signs(lake.catalog):
                add("client.region", store.signing_region)
                add("client.access-key-id", store.access_key)
                add("client.secret-access-key", store.secret_key)
                add("client.session-token", store.session_token)
            add("client.profile-name", store.profile)
            add("client.role-arn", store.role)
            if isinstance(lake.catalog, GlueCatalog):
                add("glue.region", store.signing_region)
                add("glue.access-key-id", store.access_key)
                add("glue.secret-access-key", store.secret_key)
        case GcsStore(anonymous=True):
            raise lake.refused("PyIceberg opens Google's store with credentials, and never without")
        case GcsStore() as store:
            add("gcs.service.host", store.endpoint)
            add("gcs.project-id", store.project)
        case AzureStore(endpoint=str()):
            # Arrow's client takes an endpoint and does not understand `container@account`; PyIceberg gives
            # adlfs, which does, no endpoint but in a connection string with the key in it.
            raise lake.refused("PyIceberg reads tables in Azure at Microsoft's own servers only")
        case AzureStore() as store:
            add("adls.account-name", store.account)
            add("adls.account-key", store.account_key)
            add("adls.sas-token", store.sas_token)
