"""The kinds of catalog that a project may declare."""

from typing import Annotated

from pydantic import Field

from esker.project.catalogs.jdbc import JdbcCatalog
from esker.project.catalogs.rest import RestCatalog
from esker.project.catalogs.sqlite import SqliteCatalog

Catalog = Annotated[SqliteCatalog | JdbcCatalog | RestCatalog, Field(discriminator="type")]

__all__ = ["Catalog", "JdbcCatalog", "RestCatalog", "SqliteCatalog"]
