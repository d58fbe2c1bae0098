"""The files of a load package, as dlt wrote them, on their way to a table: read by DuckDB, piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import pyarrow as pa

from esker.dlt.declared import Merge
from esker.engine.compat import arrow_schema
from esker.project import Pipeline
from esker.project.types import columns_as_json
from esker.sources.exact import with_columns
from esker.sources.spool import ArrowSpool

_GROUP = 50_000
_NESTED = ("STRUCT", "MAP", "UNION")


def quoted(name: str) -> str:
    """Return a name as DuckDB takes it."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class StagedFiles:
    """What a load package has for one table."""

    paths: tuple[Path, ...]

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        return connection

    @cached_property
    def _columns(self) -> dict[str, str]:
        """Names and types of what the files hold."""
        if not self.paths:
            return {}
        found = self._connection.execute(f"DESCRIBE SELECT * FROM {self.all}").fetchall()
        return {row[0]: row[1] for row in found}

    @property
    def all(self) -> str:
        """All rows, for a query."""
        listed = ", ".join("'" + str(path).replace("'", "''") + "'" for path in self.paths)
        return f"read_parquet([{listed}], union_by_name = true)"

    def rows(self, pipeline: Pipeline, query: str | None = None) -> ArrowSpool:
        """Return rows with the columns that a pipeline declares, in their types; all, or those of a query."""
        wanted = arrow_schema(columns_as_json(pipeline.declared_columns()))
        spool = ArrowSpool(wanted)
        try:
            if self.paths:
                self._fill(spool, query or self.all)
            spool.finish()
        except BaseException:
            spool.close()
            raise
        return spool

    def _fill(self, spool: ArrowSpool, query: str) -> None:
        names = [field.name for field in spool.schema if field.name in self._columns]
        parts = ", ".join(f"{self._value(name)} AS {quoted(name)}" for name in names)
        reader = self._connection.execute(f"SELECT {parts} FROM {query}").to_arrow_reader(_GROUP)
        for batch in reader:
            spool.add(with_columns(pa.Table.from_batches([batch]), spool.schema))

    def _value(self, name: str) -> str:
        """Return the expression for a value, as Iceberg tables have it."""
        kind = self._columns[name]
        if kind.startswith(_NESTED) or kind.endswith("]"):
            return f"CAST(to_json({quoted(name)}) AS VARCHAR)"
        return (
            f"CAST({quoted(name)} AS VARCHAR)" if kind.startswith("TIME ") or kind == "TIME" else quoted(name)
        )

    def keys(self, columns: Sequence[str], names: Sequence[str] | None = None) -> ArrowSpool:
        """Return the different values of some columns, under other names."""
        renamed = zip(columns, names or columns, strict=True)
        parts = ", ".join(f"{quoted(old)} AS {quoted(new)}" for old, new in renamed)
        return self.found(f"SELECT DISTINCT {parts} FROM {self.all}")

    def found(self, query: str) -> ArrowSpool:
        """Return the rows of a query as they are."""
        reader = self._connection.execute(query).to_arrow_reader(_GROUP)
        spool = ArrowSpool(reader.schema)
        for batch in reader:
            spool.add(pa.Table.from_batches([batch], reader.schema))
        spool.finish()
        return spool

    def of_roots(self, merge: Merge, staged: StagedFiles, root: Merge) -> str:
        """Return a query for the nested rows whose root, one of those staged, comes into the table."""
        assert merge.root_key is not None
        assert merge.row_key is not None
        assert root.row_key is not None
        roots = f"SELECT {quoted(root.row_key)} FROM {staged.survivors(root) or staged.all}"
        if root.hard_delete is not None:
            name, is_flag = quoted(root.hard_delete[0]), root.hard_delete[1]
            roots += f" WHERE NOT coalesce({name}, false)" if is_flag else f" WHERE {name} IS NULL"
        where = f"WHERE {quoted(merge.root_key)} IN ({roots}) "
        return self._first_of((merge.row_key,), ["_esker_place DESC"], where)

    def survivors(self, merge: Merge) -> str | None:
        """Return a query for the one row of each primary key that stays; None where all stay."""
        if merge.is_nested or not merge.primary_key or not self.paths:
            return None
        order = [f"{quoted(merge.sort[0])} {merge.sort[1].upper()} NULLS LAST"] if merge.sort else []
        order.append("_esker_place DESC")
        return self._first_of(merge.primary_key, order)

    def _first_of(self, keys: Sequence[str], order: Sequence[str], where: str = "") -> str:
        """Return a query for the first row of each key. `_esker_place` grows as rows arrive."""
        parted = ", ".join(map(quoted, keys))
        return (
            f"(SELECT * EXCLUDE (_esker_place) "
            f"FROM (SELECT *, row_number() OVER () AS _esker_place FROM {self.all}) {where}"
            f"QUALIFY row_number() OVER (PARTITION BY {parted} ORDER BY {', '.join(order)}) = 1)"
        )
