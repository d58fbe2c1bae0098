"""What dlt keeps in the lake: its loads, schemas and states, to be found on another machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from dlt.common.destination.client import StateInfo, StorageSchemaInfo
from dlt.common.pendulum import pendulum
from dlt.common.schema import Schema
from pyspark.sql import functions as F

from esker.dlt.declared import own_table
from esker.engine.compat import to_arrow
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.lookup import Keys, look_up
from esker.engine.iceberg.table import TableId, exists
from esker.engine.session import Engine
from esker.project.types import quoted

_STATE = ("version", "engine_version", "pipeline_name", "state", "created_at", "version_hash")


@dataclass(frozen=True)
class Kept:
    """The tables `_dlt_loads`, `_dlt_version` and `_dlt_pipeline_state` of a dataset."""

    engine: Engine
    dlt_schema: Schema
    dataset: str
    is_plain: bool = False
    """Their names have no underscore in front."""

    @property
    def exists(self) -> bool:
        """Whether a load was ever completed, or begun."""
        return exists(self.engine, self._place(self.dlt_schema.loads_table_name))

    def completed(self, loads: Iterable[str]) -> set[str]:
        """Return those of some loads that were completed."""
        load_id, status = self._name("load_id"), self._name("status")
        rows = self._rows(self.dlt_schema.loads_table_name, load_id, list(loads), [load_id, status])
        return {row[load_id] for row in rows if row[status] == 0}

    def schema(self, column: str, value: str | None) -> StorageSchemaInfo | None:
        """Return the newest schema with a value in a column; without a value, the newest of all."""
        names = [self._name(each) for each in StorageSchemaInfo._fields]
        values = None if value is None else [value]
        rows = self._rows(self.dlt_schema.version_table_name, self._name(column), values, names)
        if not rows:
            return None
        newest = max(rows, key=lambda row: row[self._name("inserted_at")])
        return StorageSchemaInfo.from_normalized_mapping(newest, self.dlt_schema.naming)

    def state(self, pipeline: str) -> StateInfo | None:
        """Return the state with which the last load of a pipeline was completed."""
        table, load_id = self.dlt_schema.state_table_name, self._name("_dlt_load_id")
        by_name = self._name("pipeline_name")
        known = {row[load_id] for row in self._rows(table, by_name, [pipeline], [by_name, load_id])}
        if not (done := self.completed(known)):
            return None
        names = [self._name(each) for each in (*_STATE, "_dlt_load_id")]
        rows = self._rows(table, load_id, [max(done, key=float)], names)
        found = next(row for row in rows if row[by_name] == pipeline)
        return StateInfo.from_normalized_mapping(found, self.dlt_schema.naming)

    def _rows(
        self, name: str, key: str, values: Sequence[str] | None, columns: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Return rows of a table that have one of some values in a column; all rows for no values.

        Tables of some rows are read by this process: a Spark job would take longer.
        """
        place = self._place(name)
        if not exists(self.engine, place) or values == []:
            return []
        attempt = Attempt(self.engine, place)
        if values is not None and not attempt.files.has_equality_deletes:
            # Expired under the lookup: Spark looks again.
            with suppress(FileNotFoundError):
                keys = Keys(pa.table({key: pa.array(values, pa.string())}))
                found, _ = look_up(attempt.files, attempt.schema, keys, list(dict.fromkeys([key, *columns])))
                return [_read(row) for hits in found for row in hits.rows.to_pylist()]
        rows = self.engine.spark.table(place.sql)
        if values is not None:
            rows = rows.where(F.col(quoted(key)).isin(list(values)))
        with explained(f'cannot read tables of dlt in "{self.dataset}"', self.engine.log):
            found_rows = to_arrow(rows.select(*map(quoted, columns)))
        return [_read(row) for row in found_rows.to_pylist()]

    def _place(self, name: str) -> TableId:
        catalog = self.engine.project.catalog_name(None)
        self.engine.open_catalog(catalog)
        return TableId(catalog, f"{self.dataset}.{own_table(name, is_plain=self.is_plain)}")

    def _name(self, column: str) -> str:
        return str(self.dlt_schema.naming.normalize_identifier(column))


def _read(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with moments as dlt has them."""
    return {key: pendulum.instance(v) if isinstance(v, datetime) else v for key, v in row.items()}
