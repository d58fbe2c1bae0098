"""A server that speaks Iceberg's REST protocol."""

from __future__ import annotations

from esker.engine.catalogs.binding import Binding
from esker.engine.catalogs.s3 import JAR as AWS
from esker.engine.catalogs.s3 import keys_of, named
from esker.engine.catalogs.stores import jar_of, properties_of
from esker.project import Project
from esker.project.catalogs import RestCatalog
from esker.project.stores import AzureStore, FileStore, S3Store
from esker.project.warehouses import store_kind

CLIENT = {
    "type": "rest",
    # Without them the client waits for ever for a server that took the commit and fell silent.
    "rest.client.connection-timeout-ms": "10000",
    "rest.client.socket-timeout-ms": "60000",
    # A report of each commit to the catalog is a request more; Esker tells of its runs itself.
    "rest-metrics-reporting-enabled": "false",
}
"""What every REST catalog is told."""


def bind(catalog: RestCatalog, project: Project) -> Binding:
    """Return what Spark must know of a REST catalog."""
    settings = CLIENT | {"uri": catalog.uri}
    if catalog.warehouse is not None:
        settings["warehouse"] = catalog.warehouse
    store = project.store_of(catalog)
    settings |= _way_in(catalog, store)
    if catalog.vended_credentials:
        settings["header.X-Iceberg-Access-Delegation"] = "vended-credentials"
    if store is not None:
        settings |= properties_of(store)
    # Without keys of the project the catalog hands them out, table by table: nothing to try beforehand.
    has_keys = not catalog.vended_credentials and _has_keys(store)
    warehouse = catalog.warehouse or catalog.uri
    jars = {jar_of(store): None} if store is not None else {}
    return Binding(
        settings=settings | catalog.properties,
        jars=tuple(jars | ({AWS: None} if catalog.sigv4 is not None else {})),
        warehouse=warehouse,
        takes_deletes=catalog.sigv4 is None or catalog.sigv4.service != "s3tables",
        bucket=warehouse if has_keys and store_kind(warehouse) is not None else None,
    )


def _way_in(catalog: RestCatalog, store: FileStore | None) -> dict[str, str]:
    """Return what the client shows to the server."""
    if catalog.credential is not None:
        found = {
            "credential": catalog.credential.get_secret_value(),
            "oauth2-server-uri": catalog.token_server,
        }
        return found | ({"scope": catalog.scope} if catalog.scope is not None else {})
    if catalog.token is not None:
        return {"token": catalog.token.get_secret_value()}
    if catalog.user is not None and catalog.password is not None:
        return {
            "rest.auth.type": "basic",
            "rest.auth.basic.username": catalog.user,
            "rest.auth.basic.password": catalog.password.get_secret_value(),
        }
    if catalog.sigv4 is not None:
        return signed(catalog.sigv4.region, catalog.sigv4.service, store)
    return {}


def signed(region: str, service: str, store: FileStore | None) -> dict[str, str]:
    """Return how requests are signed, with the keys of a store, or else what the AWS environment has."""
    keys = keys_of(store) if isinstance(store, S3Store) else None
    return {
        "rest.auth.type": "sigv4",
        "rest.auth.sigv4.delegate-auth-type": "none",
        "rest.signing-name": service,
        "rest.signing-region": region,
        **named(keys, "rest."),
    }


def _has_keys(store: FileStore | None) -> bool:
    if isinstance(store, S3Store):
        return store.access_key is not None or store.profile is not None
    if isinstance(store, AzureStore):
        return store.account_key is not None or store.sas_token is not None
    return store is not None and store.anonymous
