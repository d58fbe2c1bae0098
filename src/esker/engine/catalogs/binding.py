"""What Spark must know of a catalog, whatever its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from esker.engine.catalogs.stores import jar_of, properties_of
from esker.project import Project
from esker.project.catalogs import Catalog
from esker.project.warehouses import store_kind


@dataclass(frozen=True)
class Binding:
    """Settings below `spark.sql.catalog.<name>.`, the jars they need, and what can be tried beforehand."""

    settings: Mapping[str, str] = field(repr=False)  # may hold a password
    jars: tuple[str, ...]
    warehouse: str
    folders: tuple[Path, ...] = ()
    """Local folders that it writes to."""
    bucket: str | None = None
    """A place in a store that can be reached with the settings, keys included."""
    takes_deletes: bool = True
    """Files can be deleted in its store. Amazon S3 Tables refuses that, and removes what nobody refers to."""
    java: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the driver's Java must know as a whole, because a client takes it from nowhere else."""


@dataclass(frozen=True)
class Warehouse:
    """Where a catalog keeps the files of its tables, and what Iceberg must be told to reach them."""

    location: str
    folders: tuple[Path, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    jars: tuple[str, ...] = ()

    @property
    def bucket(self) -> str | None:
        return self.location if store_kind(self.location) is not None else None

    def bound(
        self, settings: Mapping[str, str], *, jars: tuple[str, ...] = (), folders: tuple[Path, ...] = ()
    ) -> Binding:
        """Return the binding of a catalog that keeps its tables here, with settings of its own."""
        return Binding(
            settings={"warehouse": self.location, **self.settings, **settings},
            jars=(*jars, *self.jars),
            warehouse=self.location,
            folders=(*folders, *self.folders),
            bucket=self.bucket,
        )


def warehouse_of(catalog: Catalog, project: Project) -> Warehouse:
    """Return the warehouse of a catalog that has one of its own, in a folder or in a store."""
    assert catalog.warehouse is not None
    if store_kind(catalog.warehouse) is not None:
        store = project.store_of(catalog)
        assert store is not None, "the project was checked"
        return Warehouse(catalog.warehouse.rstrip("/"), (), properties_of(store), (jar_of(store),))
    if ":" in catalog.warehouse:
        return Warehouse(catalog.warehouse)
    folder = project.path(catalog.warehouse)
    return Warehouse(local_location(folder), (folder,))


def local_location(path: Path) -> str:
    """Return a folder as an Iceberg location.

    Symlinks are resolved, because Iceberg compares locations as text. Nothing is percent-encoded,
    because Hadoop's paths are not decoded.
    """
    return f"file://{path.resolve()}"
