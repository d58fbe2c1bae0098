"""What dlt keeps in the lake: its loads, schemas and states, to be found on another machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dlt.common.destination.client import StateInfo, StorageSchemaInfo
from dlt.common.pendulum import pendulum
from dlt.common.schema import Schema
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.failures import explained
from esker.engine.iceberg.table import TableId, exists
from esker.engine.session import Engine


@dataclass(frozen=True)
class Kept:
    """The tables `_dlt_loads`, `_dlt_version` and `_dlt_pipeline_state` of a dataset."""

    engine: Engine
    dlt_schema: Schema
    dataset: str

    @property
    def exists(self) -> bool:
        """Whether a load was ever completed, or begun."""
        return self._table(self.dlt_schema.loads_table_name) is not None

    def completed(self, loads: Iterable[str]) -> set[str]:
        """Return those of some loads that were completed."""
        table = self._table(self.dlt_schema.loads_table_name)
        if table is None:
            return set()
        load_id = self._name("load_id")
        rows = table.where(F.col(load_id).isin(list(loads))).select(load_id)
        return {row[0] for row in self._collect(rows)}

    def schema(self, column: str, value: str | None) -> StorageSchemaInfo | None:
        """Return the newest schema with a value in a column; without a value, the newest of all."""
        table = self._table(self.dlt_schema.version_table_name)
        if table is None:
            return None
        if value is not None:
            table = table.where(F.col(self._name(column)) == value)
        found = self._collect(table.orderBy(F.col(self._name("inserted_at")).desc()).limit(1))
        if not found:
            return None
        return StorageSchemaInfo.from_normalized_mapping(_read(found[0]), self.dlt_schema.naming)

    def state(self, pipeline: str) -> StateInfo | None:
        """Return the state with which the last load of a pipeline was completed."""
        states = self._table(self.dlt_schema.state_table_name)
        loads = self._table(self.dlt_schema.loads_table_name)
        if states is None or loads is None:
            return None
        load_id, of_state = self._name("load_id"), self._name("_dlt_load_id")
        done = loads.where(F.col(self._name("status")) == 0).select(F.col(load_id).alias(of_state)).distinct()
        rows = states.where(F.col(self._name("pipeline_name")) == pipeline).join(done, of_state, "left_semi")
        found = self._collect(rows.orderBy(F.col(of_state).desc()).limit(1))
        if not found:
            return None
        return StateInfo.from_normalized_mapping(_read(found[0]), self.dlt_schema.naming)

    def _table(self, name: str) -> DataFrame | None:
        catalog = self.engine.project.catalog_name(None)
        self.engine.open_catalog(catalog)
        place = TableId(catalog, f"{self.dataset}.{name}")
        return self.engine.spark.table(place.sql) if exists(self.engine, place) else None

    def _collect(self, rows: DataFrame) -> list[Any]:
        with explained(f'cannot read tables of dlt in "{self.dataset}"', self.engine.log):
            return rows.collect()

    def _name(self, column: str) -> str:
        return str(self.dlt_schema.naming.normalize_identifier(column))


def _read(row: Any) -> dict[str, Any]:
    """Return a row with moments as dlt has them. Spark gives them without a zone, in that of the machine."""
    return {key: _moment(value) for key, value in row.asDict().items()}


def _moment(value: Any) -> Any:
    return pendulum.instance(value.astimezone(UTC)) if isinstance(value, datetime) else value
