"""Azure's storage, as users declare it."""

from __future__ import annotations

from typing import Literal
from urllib.parse import parse_qs

from pydantic import Field, SecretStr, field_validator, model_validator

from esker.project.addresses import web_address
from esker.project.declaration import Declaration, MistakeAt
from esker.project.secrets import Secret, remember_secret

_PRINCIPAL = ("tenant_id", "client_id", "client_secret")


class AzureStore(Declaration):
    """Files in Azure Blob Storage or Data Lake Storage. Without keys, Azure's default credential is taken:
    the environment, a managed identity, or `az login`."""

    type: Literal["azure"]
    account: str = Field(pattern=r"^[a-z0-9]{3,24}$", description="Name of the storage account.")
    account_key: Secret | None = None
    sas_token: Secret | None = Field(None, description="A shared access signature, in place of the key.")
    tenant_id: str | None = Field(None, description="Of a service principal, with `client_id`.")
    client_id: str | None = None
    client_secret: Secret | None = None
    endpoint: str | None = Field(
        None, description="Address of another server, such as Azurite. Default: Azure's own."
    )

    @field_validator("endpoint")
    @classmethod
    def _whole_address(cls, endpoint: str | None) -> str | None:
        return web_address(endpoint, "account_key:") if endpoint is not None else None

    @field_validator("sas_token")
    @classmethod
    def _hide_signature(cls, token: SecretStr | None) -> SecretStr | None:
        # Azure's client puts the parts into addresses in another order, and these into its errors.
        if token is not None:
            for value in parse_qs(token.get_secret_value().removeprefix("?")).get("sig", []):
                remember_secret(value)
        return token

    @model_validator(mode="after")
    def _one_way_in(self) -> AzureStore:
        principal = [name for name in _PRINCIPAL if getattr(self, name) is not None]
        if principal and len(principal) < len(_PRINCIPAL):
            lacking = next(name for name in _PRINCIPAL if name not in principal)
            raise MistakeAt((principal[0],), f"{principal[0]} is of no use without {lacking}")
        ways = [self.account_key is not None, self.sas_token is not None, bool(principal)]
        if sum(ways) > 1:
            raise ValueError("account_key, sas_token and client_secret are three ways in: write one")
        return self

    def why_not_for_tables(self) -> str | None:
        """Return why tables cannot be kept in it, if so."""
        if self.client_secret is not None:
            # Iceberg's client takes a key, a signature, or Azure's default credential.
            return (
                "tables cannot be reached with client_secret: leave out tenant_id, client_id and "
                "client_secret, and set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET in the "
                "environment"
            )
        return None
