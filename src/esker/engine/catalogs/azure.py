"""How Iceberg is told about Azure's storage."""

from __future__ import annotations

from esker.project.stores import AzureStore

JAR = "azure"
"""Microsoft's client."""


def properties_of(store: AzureStore) -> dict[str, str]:
    """Return the properties of a catalog whose tables' files are in the store."""
    host = f"{store.account}.dfs.core.windows.net"
    found = {"io-impl": "org.apache.iceberg.azure.adlsv2.ADLSFileIO"}
    if store.endpoint is not None:
        found[f"adls.connection-string.{host}"] = f"{store.endpoint}/{store.account}"
    if store.account_key is not None:
        found["adls.auth.shared-key.account.name"] = store.account
        found["adls.auth.shared-key.account.key"] = store.account_key.get_secret_value()
    if store.sas_token is not None:
        found[f"adls.sas-token.{host}"] = store.sas_token.get_secret_value().removeprefix("?")
    return found
