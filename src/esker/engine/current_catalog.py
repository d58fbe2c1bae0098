"""The catalog that names without one are looked for in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from esker.engine.cleanup import cleaning_up
from esker.engine.session import Engine
from esker.engine.sql_parser import parts_of
from esker.project.types import quoted


@contextmanager
def current_catalog(engine: Engine, catalog: str) -> Iterator[None]:
    """Let names without a catalog mean this one, and leave the session as it was."""
    spark = engine.spark
    before, namespace = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
    back = ".".join(quoted(part) for part in (before, *parts_of(spark, namespace)))
    spark.catalog.setCurrentCatalog(catalog)
    with cleaning_up(lambda: spark.sql(f"USE {back}")):
        yield
