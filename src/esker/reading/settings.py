"""What PyIceberg is told to open a catalog of a project, as values: to open it, or to print a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from pydantic import SecretStr

from esker.project import Project
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
from esker.project.secrets import names_in
from esker.project.stores import AzureStore, FileStore, GcsStore, S3Store

_HEADER = "header."
NO_FOLDERS = "PyIceberg has no catalog of folders"
BY_JAVA = ("hdfs", "viewfs")
"""Schemes of stores that are reached with Java only."""
CHOOSE_LOCATIONS = ("rest", "nessie", "s3tables")
"""Types of catalogs whose servers write the metadata of tables, and say where it goes."""
WRITTEN_VERSION = 2
"""The newest format version whose metadata PyIceberg writes itself."""


@dataclass(frozen=True)
class Address:
    """An address with a password in the middle, which is quoted there."""

    before: str
    password: SecretStr
    after: str


Setting = str | SecretStr | Address | Mapping[str, "Setting"]
"""What a property of PyIceberg is set to."""


class Unsuited(Exception):
    """PyIceberg cannot open a catalog, or its store, and why."""


def settings_of(project: Project, catalog: AnyCatalog) -> dict[str, Setting]:
    """Return the properties of a catalog and its store for PyIceberg, or raise Unsuited."""
    told = (*_catalog(project, catalog), *_store(project.store_of(catalog), catalog))
    return {name: value for name, value in told if value is not None}


def as_value(setting: Setting) -> str | dict[str, object]:
    """Return what is handed to PyIceberg itself. Secrets are in it."""
    match setting:
        case str():
            return setting
        case SecretStr():
            return setting.get_secret_value()
        case Address():
            return f"{setting.before}{quote(setting.password.get_secret_value(), safe='')}{setting.after}"
        case _:
            return {name: as_value(inner) for name, inner in setting.items()}


def _catalog(project: Project, catalog: AnyCatalog) -> Iterator[tuple[str, Setting | None]]:
    match catalog:
        case SqliteCatalog(path=path):
            yield "type", "sql"
            yield "uri", f"sqlite:///{project.path(path).resolve()}"
            yield "warehouse", _folder(project, catalog)
            yield "init_catalog_tables", "false"
        case JdbcCatalog():
            yield "type", "sql"
            yield "uri", _postgresql(catalog)
            yield "warehouse", _folder(project, catalog)
            yield "init_catalog_tables", "false"
        case RestCatalog():
            yield "type", "rest"
            yield "uri", catalog.uri
            yield "warehouse", catalog.warehouse
            yield from _way_in(catalog)
            yield from _headers(catalog.properties)
            if catalog.sigv4 is not None:
                yield from _signed(catalog.sigv4.region, catalog.sigv4.service)
        case S3TablesCatalog():
            yield "type", "rest"
            yield "uri", catalog.address
            yield "warehouse", catalog.warehouse
            yield from _headers(catalog.properties)
            yield from _signed(catalog.region, "s3tables")
        case GlueCatalog():
            yield "type", "glue"
            yield "glue.id", catalog.account
            yield "glue.endpoint", catalog.endpoint
        case HiveCatalog():
            yield "type", "hive"
            yield "uri", catalog.uri
        case NessieCatalog():
            raise Unsuited(
                "PyIceberg does not speak Nessie's own protocol; where the server also answers at …/iceberg, "
                "declare that address as a connection of type rest"
            )
        case HadoopCatalog():
            raise Unsuited(NO_FOLDERS)


def _way_in(catalog: RestCatalog) -> Iterator[tuple[str, Setting | None]]:
    """Yield what is shown to a REST catalog."""
    if catalog.token is not None:
        yield "token", catalog.token
    elif catalog.user is not None and catalog.password is not None:
        basic: Setting = {"username": catalog.user, "password": catalog.password}
        yield "auth", {"type": "basic", "basic": basic}
    elif catalog.credential is not None:
        yield "credential", catalog.credential
        yield "oauth2-server-uri", catalog.token_server
        yield "scope", catalog.scope


def _headers(properties: Mapping[str, str]) -> Iterator[tuple[str, Setting]]:
    """Yield what each request to a REST catalog bears, as Iceberg's own client is told."""
    for name, value in properties.items():
        if name.lower().startswith(_HEADER):
            # Perhaps a key of a gateway in front of the server: programs that are printed name its variable.
            told = SecretStr(value) if names_in(value) else value
            yield f"{_HEADER}{name[len(_HEADER) :]}", told


def _postgresql(catalog: JdbcCatalog) -> Setting:
    """Return the address of the database with user and password."""
    server = catalog.url.removeprefix("jdbc:postgresql://")
    who = catalog.user or ""
    if catalog.password is None:
        return f"postgresql+psycopg2://{who}{'@' if who else ''}{server}"
    return Address(f"postgresql+psycopg2://{who}:", catalog.password, f"@{server}")


def _folder(project: Project, catalog: AnyCatalog) -> str:
    location = project.warehouse_of(catalog)
    return location if ":" in location else f"file://{location}"


def _signed(region: str, service: str) -> Iterator[tuple[str, Setting]]:
    yield "rest.sigv4-enabled", "true"
    yield "rest.signing-region", region
    yield "rest.signing-name", service


def _signs(catalog: AnyCatalog) -> bool:
    return isinstance(catalog, S3TablesCatalog) or (
        isinstance(catalog, RestCatalog) and catalog.sigv4 is not None
    )


def _store(store: FileStore | None, catalog: AnyCatalog) -> Iterator[tuple[str, Setting | None]]:
    match store:
        case S3Store():
            yield "s3.endpoint", store.endpoint
            yield "s3.region", store.signing_region
            if store.endpoint is not None and not store.path_style:
                yield "s3.force-virtual-addressing", "true"
            yield "s3.access-key-id", store.access_key
            yield "s3.secret-access-key", store.secret_key
            yield "s3.session-token", store.session_token
            if _signs(catalog):
                yield "client.region", store.signing_region
                yield "client.access-key-id", store.access_key
                yield "client.secret-access-key", store.secret_key
                yield "client.session-token", store.session_token
            yield "client.profile-name", store.profile
            yield "client.role-arn", store.role
            if isinstance(catalog, GlueCatalog):
                if store.role is not None:
                    # It would ask Glue as whoever runs it, and S3 in the role.
                    raise Unsuited("PyIceberg assumes a role for S3 only, and not for Glue")
                yield "glue.region", store.signing_region
                yield "glue.access-key-id", store.access_key
                yield "glue.secret-access-key", store.secret_key
                yield "glue.session-token", store.session_token
        case GcsStore(anonymous=True):
            raise Unsuited("PyIceberg opens Google's store with credentials, and never without")
        case GcsStore():
            yield "gcs.service.host", store.endpoint
            yield "gcs.project-id", store.project
        case AzureStore(endpoint=str()):
            # Arrow's client takes an endpoint and does not understand `container@account`; PyIceberg gives
            # adlfs, which does, no endpoint but in a connection string with the key in it.
            raise Unsuited("PyIceberg reads tables in Azure at Microsoft's own servers only")
        case AzureStore():
            yield "adls.account-name", store.account
            yield "adls.account-key", store.account_key
            yield "adls.sas-token", store.sas_token
