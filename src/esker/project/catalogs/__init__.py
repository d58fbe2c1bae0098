"""The kinds of catalog that a project may declare."""

from typing import Annotated

from pydantic import Field

from esker.project.catalogs.glue import GlueCatalog
from esker.project.catalogs.hadoop import HadoopCatalog
from esker.project.catalogs.hive import HiveCatalog
from esker.project.catalogs.jdbc import JdbcCatalog
from esker.project.catalogs.nessie import NessieCatalog
from esker.project.catalogs.rest import RestCatalog, SigV4
from esker.project.catalogs.s3tables import S3TablesCatalog
from esker.project.catalogs.sqlite import SqliteCatalog

AnyCatalog = (
    SqliteCatalog
    | JdbcCatalog
    | RestCatalog
    | S3TablesCatalog
    | GlueCatalog
    | HiveCatalog
    | NessieCatalog
    | HadoopCatalog
)
"""All kinds."""

Catalog = Annotated[AnyCatalog, Field(discriminator="type")]
"""The same, told apart by `type`."""

__all__ = [
    "AnyCatalog",
    "Catalog",
    "GlueCatalog",
    "HadoopCatalog",
    "HiveCatalog",
    "JdbcCatalog",
    "NessieCatalog",
    "RestCatalog",
    "S3TablesCatalog",
    "SigV4",
    "SqliteCatalog",
]
