"""What dlt calls: once to check and make the tables, once when all files of a load package are there.

dlt starts a job for each file. Here a job is done at once: the files stay where they are, and all of them
are loaded when dlt completes the package, table by table. If that is interrupted, dlt completes the same
package again, and tables that have it already leave it alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any

from dlt.common.destination.client import (
    JobClientBase,
    LoadJob,
    RunnableLoadJob,
    StateInfo,
    StorageSchemaInfo,
    WithStateSync,
)
from dlt.common.destination.exceptions import DestinationUndefinedEntity
from dlt.common.destination.typing import PreparedTableSchema
from dlt.common.schema import TSchemaTables
from dlt.destinations.utils import verify_schema_merge_disposition

from esker.dlt.kept import Kept
from esker.dlt.loading import PackageLoading
from esker.dlt.package import LoadPackage, pipeline_name
from esker.dlt.tables import DltTables
from esker.dlt.told import told
from esker.errors import DltRefused
from esker.pipeline.api import OpenProject
from esker.project.catalogs import S3TablesCatalog


class FileStays(RunnableLoadJob):
    """A file of a package, which is loaded with all others. One that runs: dlt waits a second for others."""

    def run(self) -> None:
        """Do nothing."""


class EskerClient(JobClientBase, WithStateSync):
    """Loads the packages of one schema into the tables of a project."""

    _project: OpenProject
    _give_up: tuple[str, ...]
    _plain_names: bool | None

    def open(self, project: OpenProject, give_up: tuple[str, ...], plain_names: bool | None = None) -> None:
        """Say where to load to."""
        self._project, self._give_up, self._plain_names = project, give_up, plain_names

    def initialize_storage(self, truncate_tables: Iterable[str] | None = None) -> None:
        """Do nothing: tables are emptied by the commit that brings the new rows, never before."""

    @told
    def is_storage_initialized(self) -> bool:
        return self._kept.exists

    @told
    def drop_storage(self) -> None:
        self._refuse_drop("The dataset would be dropped.")

    @told
    def drop_tables(self, *tables: str, delete_schema: bool = True) -> None:
        """Refuse: dlt drops tables with `refresh="drop_sources"` and `refresh="drop_resources"`."""
        self._refuse_drop(f"Tables would be dropped: {', '.join(tables)}.")

    def verify_schema(
        self, only_tables: Iterable[str] | None = None, new_jobs: Iterable[Any] | None = None
    ) -> list[PreparedTableSchema]:
        found: list[PreparedTableSchema] = super().verify_schema(only_tables, new_jobs)
        if wrong := verify_schema_merge_disposition(self.schema, found, self.capabilities, warnings=False):
            raise wrong[0]
        return found

    @told
    def update_stored_schema(
        self,
        only_tables: Iterable[str] | None = None,
        expected_update: TSchemaTables | None = None,
        force: bool = False,
    ) -> TSchemaTables | None:
        """Check all tables that the package is for, then make those that are missing."""
        update = super().update_stored_schema(only_tables, expected_update, force)
        tables = self._tables(pipeline_name(), only_tables or self.schema.tables)
        tables.check()
        tables.create()
        return update

    def create_load_job(
        self, table: PreparedTableSchema, file_path: str, load_id: str, restore: bool = False
    ) -> LoadJob:
        return FileStays(file_path)

    @told
    def complete_load(self, load_id: str) -> None:
        """Load all tables of a package, then dlt's own, `_dlt_loads` last."""
        package = LoadPackage.current(load_id)
        emptied = (name for name in package.truncated if name in self.schema.tables)
        tables = self._tables(package.pipeline, [*package.files, *emptied])
        tables.check()
        PackageLoading(self._project, self.schema, tables, package).load(self._give_up)

    @told
    def get_stored_schema(self, schema_name: str | None = None) -> StorageSchemaInfo | None:
        return self._kept.schema("schema_name", schema_name)

    @told
    def get_stored_schema_by_hash(self, version_hash: str) -> StorageSchemaInfo | None:
        return self._kept.schema("version_hash", version_hash)

    @told
    def get_stored_state(self, pipeline_name: str) -> StateInfo | None:
        kept = self._kept
        if not kept.exists:
            raise DestinationUndefinedEntity(f"there are no tables of dlt in {self._dataset}")
        return kept.state(pipeline_name)

    def __enter__(self) -> EskerClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @property
    def _dataset(self) -> str:
        config: Any = self.config
        return str(config.normalize_dataset_name(self.schema))

    @property
    def _kept(self) -> Kept:
        return Kept(self._project.engine, self.schema, self._dataset, self._is_plain)

    def _tables(self, pipeline: str, names: Iterable[str]) -> DltTables:
        return DltTables.of(self, self._project, pipeline, self._dataset, names, is_plain=self._is_plain)

    @property
    def _is_plain(self) -> bool:
        """The catalog takes no names that begin with an underscore, as far as its type or the user says."""
        if self._plain_names is not None:
            return self._plain_names
        return isinstance(self._project.project.catalog, S3TablesCatalog)

    def _refuse_drop(self, why: str) -> None:
        remedy = 'Use refresh="drop_data", which empties tables, or drop them yourself, with SQL.'
        raise DltRefused(f"{self._dataset}.*", why, remedy)
