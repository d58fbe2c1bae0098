"""The dead letters of a consumer, read and written without Spark.

Many small files are put together by a delivery with Spark, as before.
"""

from __future__ import annotations

import json
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema

from esker.deliver.in_process.view import View
from esker.engine.iceberg.columns import schema_json
from esker.engine.iceberg.table_id import TABLE_DEFAULTS, TableId
from esker.errors import CatalogUnreachable, SideTableLost, TableNotFound
from esker.ledger.dead_letter_events import COLUMNS, NARROW, Waiting, current_letters
from esker.project.secrets import redact
from esker.reading.lake import Lake

_TRIES = 5
_KNOWN: WeakKeyDictionary[Lake, dict[TableId, tuple[int | None, Waiting]]] = WeakKeyDictionary()
"""The letters of one snapshot of each table: who follows looks every few seconds."""


class LettersInProcess:
    """The dead letters of one consumer."""

    def __init__(self, lake: Lake, table: TableId, beside: TableId) -> None:
        """`beside` is the table whose changes are delivered: a new table of letters is made next to it."""
        self._lake, self._table, self._beside = lake, table, beside

    def waiting(self) -> Waiting:
        """Return the letters that are dead now, all of them. Raises NeedsSpark."""
        try:
            view = View(self._lake.table(self._table.catalog, self._table.name))
        except TableNotFound:
            return Waiting({}, 0)
        current = view.table.current
        known = _KNOWN.setdefault(self._lake, {})
        version = current.snapshot_id if current is not None else None
        if self._table in known and known[self._table][0] == version:
            return known[self._table][1]
        waiting = current_letters(view.rows(view.files, view.files.data, NARROW).to_pylist())
        known[self._table] = version, waiting
        return waiting

    def add(self, events: pa.Table) -> None:
        """Append events. The table is made with the first ones. Raises SideTableLost, CatalogUnreachable."""
        if not len(events):
            return
        failure: Exception | None = None
        for _ in range(_TRIES):
            try:
                table = self._lake.writable(self._table.catalog, self._table.name)
            except TableNotFound:
                self._make()
                continue
            wanted = schema_to_pyarrow(table.schema(), include_field_ids=False)
            columns = [events.column(field.name).cast(field.type) for field in wanted]
            try:
                # What comes twice, as its answer was lost, says the same twice.
                table.append(pa.table(columns, schema=wanted))
            except CommitFailedException as error:
                failure = error  # somebody was faster
            except Exception as error:
                # Each catalog's client has errors of its own, without a common root.
                raise CatalogUnreachable(self._table.catalog, redact(_first_line(error))) from error
            else:
                return
        raise SideTableLost(str(self._table), f"dead letters could not be written: {failure}")

    def _make(self) -> None:
        catalog, name = self._table.catalog, self._table.name
        schema = Schema.model_validate_json(json.dumps(schema_json(COLUMNS)))
        try:
            opened = self._lake.catalog(catalog)
            opened.create_namespace_if_not_exists(self._table.namespace)
            opened.create_table(name, schema, location=self._location(), properties=TABLE_DEFAULTS)
        except TableAlreadyExistsError:
            return
        except Exception as error:
            raise CatalogUnreachable(catalog, redact(_first_line(error))) from error

    def _location(self) -> str | None:
        """Return where the table goes; None where the catalog's server chooses that."""
        if self._lake.chooses_locations(self._table.catalog):
            return None
        place = self._lake.table(self._beside.catalog, self._beside.name).metadata.location
        return f"{place.rpartition('/')[0]}/{self._table.name.rpartition('.')[2]}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
