"""A catalog's properties for Trino: `etc/catalog/<name>.properties`."""

from __future__ import annotations

from esker.pipeline.export.reader import Exported, Lake, Settings
from esker.project.catalogs import (
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
from esker.project.warehouses import store_kind


def export(lake: Lake) -> Exported:
    """Return the properties. Raises CannotExport."""
    settings = Settings.empty("${{ENV:{}}}")
    settings.add("connector.name", "iceberg")
    match lake.catalog:
        case RestCatalog() as catalog:
            _rest(lake, catalog, settings)
        case S3TablesCatalog() as catalog:
            settings.add("iceberg.catalog.type", "rest")
            settings.add("iceberg.rest-catalog.uri", catalog.address)
            settings.add("iceberg.rest-catalog.warehouse", catalog.warehouse)
            settings.add("iceberg.rest-catalog.sigv4-enabled", True)
            settings.add("iceberg.rest-catalog.signing-name", "s3tables")
            settings.add("iceberg.rest-catalog.view-endpoints-enabled", False)
        case JdbcCatalog() as catalog:
            settings.add("iceberg.catalog.type", "jdbc")
            settings.add("iceberg.jdbc-catalog.catalog-name", lake.name)
            settings.add("iceberg.jdbc-catalog.driver-class", "org.postgresql.Driver")
            settings.add("iceberg.jdbc-catalog.connection-url", catalog.url)
            settings.add("iceberg.jdbc-catalog.connection-user", catalog.user)
            settings.add("iceberg.jdbc-catalog.connection-password", catalog.password)
            settings.add("iceberg.jdbc-catalog.default-warehouse-dir", lake.location)
            settings.add("iceberg.jdbc-catalog.schema-version", "V1")
        case GlueCatalog() as catalog:
            settings.add("iceberg.catalog.type", "glue")
            settings.add("hive.metastore.glue.default-warehouse-dir", lake.location)
            settings.add("hive.metastore.glue.catalogid", catalog.account)
            settings.add("hive.metastore.glue.endpoint-url", catalog.endpoint)
            if isinstance(lake.store, S3Store):
                settings.add("hive.metastore.glue.region", lake.store.signing_region)
                settings.add("hive.metastore.glue.aws-access-key", lake.store.access_key)
                settings.add("hive.metastore.glue.aws-secret-key", lake.store.secret_key)
                settings.add("hive.metastore.glue.iam-role", lake.store.role)
                settings.add("hive.metastore.glue.external-id", lake.store.external_id)
        case HiveCatalog() as catalog:
            settings.add("iceberg.catalog.type", "hive_metastore")
            settings.add("hive.metastore.uri", catalog.uri)
        case NessieCatalog() as catalog:
            _nessie(lake, catalog, settings)
        case SqliteCatalog():
            raise lake.refused("Trino has no driver for SQLite; it needs a catalog of another type")
        case HadoopCatalog():
            raise lake.refused("Trino has no catalog of folders; it needs a catalog of another type")
    _store(lake, settings)
    text = "".join(f"{name}={value}\n" for name, value in settings.values.items())
    return Exported(f"etc/catalog/{lake.name}.properties", text, tuple(settings.used))


def _rest(lake: Lake, catalog: RestCatalog, settings: Settings) -> None:
    settings.add("iceberg.catalog.type", "rest")
    settings.add("iceberg.rest-catalog.uri", catalog.uri)
    settings.add("iceberg.rest-catalog.warehouse", catalog.warehouse)
    if catalog.user is not None:
        raise lake.refused("Trino sends neither user nor password to a REST catalog; it needs a token")
    if catalog.credential is not None or catalog.token is not None:
        settings.add("iceberg.rest-catalog.security", "OAUTH2")
        settings.add("iceberg.rest-catalog.oauth2.credential", catalog.credential)
        settings.add("iceberg.rest-catalog.oauth2.token", catalog.token)
        if catalog.credential is not None:
            settings.add("iceberg.rest-catalog.oauth2.server-uri", catalog.token_server)
            settings.add("iceberg.rest-catalog.oauth2.scope", catalog.scope)
    if catalog.sigv4 is not None:
        settings.add("iceberg.rest-catalog.sigv4-enabled", True)
        settings.add("iceberg.rest-catalog.signing-name", catalog.sigv4.service)
    if catalog.vended_credentials:
        settings.add("iceberg.rest-catalog.vended-credentials-enabled", True)


def _nessie(lake: Lake, catalog: NessieCatalog, settings: Settings) -> None:
    settings.add("iceberg.catalog.type", "nessie")
    settings.add("iceberg.nessie-catalog.uri", catalog.uri)
    settings.add("iceberg.nessie-catalog.ref", catalog.ref)
    settings.add("iceberg.nessie-catalog.default-warehouse-dir", lake.location)
    if catalog.user is not None or catalog.credential is not None:
        raise lake.refused("Trino shows Nessie a token and nothing else")
    if catalog.token is not None:
        settings.add("iceberg.nessie-catalog.authentication.type", "BEARER")
        settings.add("iceberg.nessie-catalog.authentication.token", catalog.token)


def _store(lake: Lake, settings: Settings) -> None:
    """Add how the files are reached."""
    is_in_store = isinstance(lake.catalog, RestCatalog | S3TablesCatalog) or store_kind(lake.location)
    match lake.store:
        case S3Store() as store if is_in_store:
            if store.profile is not None:
                raise lake.refused("Trino reads no profiles of AWS; write keys or a role")
            settings.add("fs.native-s3.enabled", True)
            settings.add("s3.endpoint", store.endpoint)
            settings.add("s3.region", store.signing_region)
            settings.add("s3.path-style-access", True if store.path_style else None)
            settings.add("s3.aws-access-key", store.access_key)
            settings.add("s3.aws-secret-key", store.secret_key)
            settings.add("s3.iam-role", store.role)
            settings.add("s3.external-id", store.external_id)
            if store.session_token is not None:
                raise lake.refused("Trino takes no temporary keys (session_token)")
        case GcsStore() as store if is_in_store:
            settings.add("fs.native-gcs.enabled", True)
            settings.add("gcs.project-id", store.project)
            settings.add("gcs.endpoint", store.endpoint)
        case AzureStore() as store if is_in_store:
            if store.sas_token is not None:
                raise lake.refused("Trino takes no shared access signature; write account_key")
            settings.add("fs.native-azure.enabled", True)
            settings.add("azure.auth-type", "ACCESS_KEY" if store.account_key is not None else "DEFAULT")
            settings.add("azure.access-key", store.account_key)
            settings.add("azure.endpoint", store.endpoint)
        case _:
            # Folders that Trino's machines see, too.
            settings.add("fs.hadoop.enabled", True)
