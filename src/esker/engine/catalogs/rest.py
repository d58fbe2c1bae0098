"""A server that speaks Iceberg's REST protocol."""

from __future__ import annotations

from esker.engine.catalogs.binding import Binding
from esker.engine.catalogs.s3 import JAR, is_in_s3, properties_of
from esker.project import Project
from esker.project.catalogs import RestCatalog

_TIMEOUTS = {
    # Without them the client waits for ever for a server that took the commit and fell silent.
    "rest.client.connection-timeout-ms": "10000",
    "rest.client.socket-timeout-ms": "60000",
}


def bind(catalog: RestCatalog, project: Project) -> Binding:
    """Return what Spark must know of a REST catalog."""
    settings = {"type": "rest", "uri": catalog.uri, **_TIMEOUTS}
    # A report of each commit to the catalog is a request more; Esker tells of its runs itself.
    settings["rest-metrics-reporting-enabled"] = "false"
    if catalog.warehouse is not None:
        settings["warehouse"] = catalog.warehouse
    if catalog.credential is not None:
        settings["credential"] = catalog.credential.get_secret_value()
        settings["oauth2-server-uri"] = catalog.oauth2_server_uri or f"{catalog.uri}/v1/oauth/tokens"
        if catalog.scope is not None:
            settings["scope"] = catalog.scope
    if catalog.token is not None:
        settings["token"] = catalog.token.get_secret_value()
    store = project.store_of(catalog)
    if store is not None:
        settings |= properties_of(store)
    # Without keys of the project the catalog hands them out, table by table: nothing to try beforehand.
    has_keys = store is not None and store.access_key is not None
    warehouse = catalog.warehouse or catalog.uri
    return Binding(
        settings=settings | catalog.properties,
        jars=(JAR,) if store is not None else (),
        warehouse=warehouse,
        bucket=warehouse if has_keys and is_in_s3(warehouse) else None,
    )
