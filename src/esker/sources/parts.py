"""Rows of a source that does not say what its columns are: on the disk, and put together at the end."""

from __future__ import annotations

import pyarrow as pa

from esker.engine.compat import arrow_schema, arrow_schema_as_spark
from esker.errors import UnsuitableData
from esker.sources.exact import with_columns
from esker.sources.spool import ArrowSpool


class Parts:
    """Rows on their way whose columns may differ from part to part."""

    def __init__(self) -> None:
        self.rows = 0
        self._spools: list[ArrowSpool] = []
        self._blank = 0
        """Rows without any value. They come last: nothing tells them apart."""
        self._blank_names: dict[str, None] = {}

    def add(self, rows: pa.Table) -> None:
        """Write some rows. Raises UnsuitableData for a type that Spark does not have."""
        if len(set(rows.column_names)) < len(rows.column_names):
            raise UnsuitableData("Two columns have the same name.")
        self.rows += len(rows)
        # A column without any type holds nothing, and files have no such column. Rows of no others are rows.
        typed = [field.name for field in rows.schema if not pa.types.is_null(field.type)]
        if not typed:
            self._blank += len(rows)
            self._blank_names |= dict.fromkeys(rows.column_names)
            return
        rows = rows.select(typed)
        if not self._spools or self._spools[-1].schema != rows.schema:
            if self._spools:
                self._spools[-1].finish()
            self._spools.append(ArrowSpool(rows.schema))
        self._spools[-1].add(rows)

    def together(self) -> ArrowSpool:
        """Return all rows with all columns, in types that Spark has; the parts are gone.

        Raises UnsuitableData when a column's types have nothing in common, or a value would be changed.
        """
        try:
            schemas = [s.schema for s in self._spools]
            schemas = schemas or [pa.schema([(name, pa.string()) for name in self._blank_names])]
            schema = pa.unify_schemas(schemas, promote_options="permissive")
            wanted = arrow_schema(arrow_schema_as_spark(schema))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise UnsuitableData(str(error)) from error
        if len(self._spools) == 1 and self._spools[0].schema == wanted and not self._blank:
            return self._spools.pop()
        whole = ArrowSpool(wanted)
        try:
            for spool in self._spools:
                for rows in spool.pieces():
                    whole.add(with_columns(rows, wanted))
            if self._blank:
                nothing = [pa.nulls(self._blank, field.type) for field in wanted]
                whole.add(pa.Table.from_arrays(nothing, schema=wanted))
            whole.finish()
        except BaseException:
            whole.close()
            raise
        self.close()
        return whole

    def close(self) -> None:
        """Remove what is on the disk."""
        while self._spools:
            self._spools.pop().close()
