"""Project Nessie by its own protocol."""

from __future__ import annotations

from esker.engine.catalogs.binding import Binding, warehouse_of
from esker.project import Project
from esker.project.catalogs import NessieCatalog


def bind(catalog: NessieCatalog, project: Project) -> Binding:
    """Return what Spark must know of a Nessie. Its client is in Iceberg's runtime."""
    settings = {"type": "nessie", "uri": catalog.uri, "ref": catalog.ref, **_way_in(catalog)}
    return warehouse_of(catalog, project).bound(settings | catalog.properties)


def _way_in(catalog: NessieCatalog) -> dict[str, str]:
    """Return what the client shows to the server."""
    if catalog.token is not None:
        return {
            "authentication.type": "BEARER",
            "authentication.token": catalog.token.get_secret_value(),
        }
    if catalog.user is not None and catalog.password is not None:
        return {
            "authentication.type": "BASIC",
            "authentication.username": catalog.user,
            "authentication.password": catalog.password.get_secret_value(),
        }
    if catalog.credential is not None and catalog.oauth2_server_uri is not None:
        client, _, secret = catalog.credential.get_secret_value().partition(":")
        found = {
            "authentication.type": "OAUTH2",
            "authentication.oauth2.token-endpoint": catalog.oauth2_server_uri,
            "authentication.oauth2.client-id": client,
            "authentication.oauth2.client-secret": secret,
        }
        return found | ({"authentication.oauth2.client-scopes": catalog.scope} if catalog.scope else {})
    return {}
