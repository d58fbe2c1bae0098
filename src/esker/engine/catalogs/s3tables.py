"""Amazon S3 Tables: Iceberg's REST protocol with signed requests."""

from __future__ import annotations

from esker.engine.catalogs.binding import Binding
from esker.engine.catalogs.rest import CLIENT, signed
from esker.engine.catalogs.s3 import JAR, properties_of
from esker.project import Project
from esker.project.catalogs import S3TablesCatalog
from esker.project.stores import S3Store


def bind(catalog: S3TablesCatalog, project: Project) -> Binding:
    """Return what Spark must know of a table bucket."""
    store = project.store_of(catalog) or S3Store(type="s3")
    assert isinstance(store, S3Store), "the project was checked"
    return Binding(
        settings={
            **CLIENT,
            "uri": catalog.address,
            "warehouse": catalog.warehouse,
            "client.region": catalog.region,
            **signed(catalog.region, "s3tables", store),
            **properties_of(store),
            **catalog.properties,
        },
        jars=(JAR,),
        warehouse=catalog.warehouse,
        takes_deletes=False,
    )
