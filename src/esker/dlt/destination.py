"""The destination as dlt knows it: what it can do, and how it is made from a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dlt.common.configuration import configspec
from dlt.common.destination import Destination, DestinationCapabilitiesContext
from dlt.common.destination.client import DestinationClientDwhConfiguration
from dlt.common.schema import Schema

import esker
from esker.dlt.client import EskerClient
from esker.pipeline.api import OpenProject


@configspec
class EskerConfiguration(DestinationClientDwhConfiguration):
    """What dlt must know of a project: nothing. Catalog, store and secrets are the project's."""

    destination_type: str = "esker"

    def fingerprint(self) -> str:
        return ""

    def __str__(self) -> str:
        return "Esker"


class EskerDestination(Destination[EskerConfiguration, EskerClient]):
    """Loads into Iceberg tables through Esker."""

    spec = EskerConfiguration

    def __init__(
        self,
        project: OpenProject | str | Path | None = None,
        destination_name: str | None = "esker",
        environment: str | None = None,
        give_up: tuple[str, ...] = (),
        plain_names: bool | None = None,
        **further: Any,
    ) -> None:
        further.pop("credentials", None)  # whoever attaches to a pipeline sends them, and there are none
        super().__init__(destination_name=destination_name, environment=environment, **further)
        self._project = project
        self._give_up = give_up
        self._plain_names = plain_names

    @property
    def project(self) -> OpenProject:
        """The project, opened when it is needed."""
        if not isinstance(self._project, OpenProject):
            self._project = esker.open(self._project or ".")
        return self._project

    @property
    def client_class(self) -> type[EskerClient]:
        return EskerClient

    def client(self, schema: Schema, initial_config: EskerConfiguration | None = None) -> EskerClient:
        made: EskerClient = super().client(schema, initial_config)
        made.open(self.project, self._give_up, self._plain_names)
        return made

    def _raw_capabilities(self) -> DestinationCapabilitiesContext:
        found = DestinationCapabilitiesContext.generic_capabilities("parquet")
        found.supported_loader_file_formats = ["parquet"]
        found.supported_merge_strategies = ["delete-insert", "upsert", "insert-only", "scd2"]
        found.supported_replace_strategies = ["truncate-and-insert", "insert-from-staging"]
        # Spark takes names that differ in case for one.
        found.has_case_sensitive_identifiers = False
        found.decimal_precision = (38, 9)
        found.wei_precision = (38, 0)
        found.timestamp_precision = found.max_timestamp_precision = 6
        found.max_identifier_length = found.max_column_identifier_length = 255
        found.supports_ddl_transactions = found.supports_transactions = False
        return found


def destination(
    project: OpenProject | str | Path = ".",
    *,
    give_up: tuple[str, ...] = (),
    plain_names: bool | None = None,
) -> EskerDestination:
    """Return a project as a destination: `dlt.pipeline(…, destination=esker.dlt.destination(project))`.

    The project is open already, or its folder. Tables stand in its catalog, in the namespace that dlt's
    `dataset_name` names. `give_up` names loads that were left half way and will not be finished. With
    `plain_names`, dlt's own tables are called `dlt_loads` and so on, without an underscore in front, for
    catalogs that refuse it; with a catalog of type `s3tables` they are, unless it is False.
    """
    return EskerDestination(project, give_up=give_up, plain_names=plain_names)
