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

    def add(self, rows: pa.Table) -> None:
        """Write some rows. Raises UnsuitableData for a type that Spark does not have."""
        # A column without any type holds nothing, and files have no such column.
        rows = rows.select([field.name for field in rows.schema if not pa.types.is_null(field.type)])
        if not self._spools or self._spools[-1].schema != rows.schema:
            if self._spools:
                self._spools[-1].finish()
            self._spools.append(ArrowSpool(rows.schema))
        self._spools[-1].add(rows)
        self.rows += len(rows)

    def together(self) -> ArrowSpool:
        """Return all rows with all columns, in types that Spark has; the parts are gone.

        Raises UnsuitableData when a column's types have nothing in common, or a value would be changed.
        """
        try:
            schema = pa.unify_schemas([s.schema for s in self._spools], promote_options="permissive")
            wanted = arrow_schema(arrow_schema_as_spark(schema))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise UnsuitableData(str(error)) from error
        if len(self._spools) == 1 and self._spools[0].schema == wanted:
            return self._spools.pop()
        whole = ArrowSpool(wanted)
        try:
            for spool in self._spools:
                for rows in spool.pieces():
                    whole.add(with_columns(rows, wanted))
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
