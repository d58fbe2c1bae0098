"""How each kind of catalog is told to Spark. A new kind is one file here and one in `project/catalogs`."""

from collections.abc import Callable
from typing import Any

from esker.engine.catalogs import glue, hadoop, hive, jdbc, nessie, rest, s3tables, sqlite
from esker.engine.catalogs.binding import Binding
from esker.project import Project
from esker.project.catalogs import (
    Catalog,
    GlueCatalog,
    HadoopCatalog,
    HiveCatalog,
    JdbcCatalog,
    NessieCatalog,
    RestCatalog,
    S3TablesCatalog,
    SqliteCatalog,
)

_KINDS: dict[type, Callable[[Any, Project], Binding]] = {
    SqliteCatalog: sqlite.bind,
    JdbcCatalog: jdbc.bind,
    RestCatalog: rest.bind,
    S3TablesCatalog: s3tables.bind,
    GlueCatalog: glue.bind,
    HiveCatalog: hive.bind,
    NessieCatalog: nessie.bind,
    HadoopCatalog: hadoop.bind,
}


def bind(catalog: Catalog, project: Project) -> Binding:
    """Return what Spark must know of a catalog. Raises ProfileUnusable."""
    return _KINDS[type(catalog)](catalog, project)


__all__ = ["Binding", "bind"]
