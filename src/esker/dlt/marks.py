"""Which stored rows go with a load, beside those that its rows replace."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.contracts.evolution import find
from esker.dlt.rows import Marks
from esker.dlt.staged import StagedFiles, quoted
from esker.dlt.tables import DltTable
from esker.engine.compat import snapshot_frame
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.table import TableId, load
from esker.engine.session import Engine
from esker.pipeline.tables import table_of
from esker.project.types import quoted as in_spark
from esker.sources.spool import ArrowSpool


class _Marks(Marks):
    def __init__(self, engine: Engine, table: DltTable, root: DltTable) -> None:
        self.engine, self.table, self.root = engine, table, root
        self._spools: list[ArrowSpool] = []

    def find(self) -> tuple[DataFrame, int | None]:
        place = table_of(self.engine.project, self.table.declared)
        return self.keys(), Attempt(self.engine, place).current

    @abstractmethod
    def keys(self) -> DataFrame:
        """Return the keys whose rows go."""

    def close(self) -> None:
        while self._spools:
            self._spools.pop().close()

    def frame(self, spool: ArrowSpool) -> DataFrame:
        """Return rows of the load as a frame, for as long as these marks are needed."""
        self._spools.append(spool)
        return spool.frame(self.engine)

    def stored(self, table: DltTable, columns: Sequence[str]) -> DataFrame:
        """Return some columns of what a table holds; nothing where it lacks one."""
        place = table_of(self.engine.project, table.declared)
        rows = self._at(place)
        known = load(self.engine, place).columns
        if all(find(known, name) is not None for name in columns):
            return rows.select(*map(in_spark, columns))
        # It was adopted: what it holds has never been loaded by dlt.
        return rows.select(*(F.lit(None).cast("string").alias(name) for name in columns)).limit(0)

    def _at(self, place: TableId) -> DataFrame:
        base = Attempt(self.engine, place).current
        if base is None:
            return self.engine.spark.table(place.sql)
        return snapshot_frame(self.engine.spark, place.sql, base)


class AbsentVersions(_Marks):
    """Of `scd2`: versions that are valid and not in the load. With a merge key, only those with a value
    of it that the load brings.
    """

    def __init__(self, engine: Engine, table: DltTable, files: StagedFiles) -> None:
        super().__init__(engine, table, table)
        self._files = files

    def keys(self) -> DataFrame:
        merge, current = self.table.merge, self.table.declared.versions.is_current
        assert merge is not None
        assert merge.hash is not None
        others = [name for name in merge.merge_key if name != merge.hash]
        stored = self.stored(self.table, [merge.hash, current, *others]).where(F.col(in_spark(current)))
        if merge.merge_key:
            brought = self.frame(self._files.keys(merge.merge_key))
            stored = stored.join(brought, list(merge.merge_key), "left_semi")
        known = self.frame(self._files.keys([merge.hash]))
        return stored.join(known, [merge.hash], "left_anti").select(in_spark(merge.hash))


class NestedOfRoots(_Marks):
    """What is nested in rows that the load brings anew, or deletes."""

    def __init__(
        self, engine: Engine, table: DltTable, root: DltTable, nested: str | None, staged: StagedFiles
    ) -> None:
        super().__init__(engine, table, root)
        self._nested, self._staged = nested, staged

    def keys(self) -> DataFrame:
        merge, root = self.table.merge, self.root.merge
        assert merge is not None
        assert root is not None
        assert merge.root_key is not None
        assert root.row_key is not None
        if root.strategy == "upsert":
            # The id of a row is made from its key: what is stored has the same.
            return self.frame(self._staged.found(self._childless(root.row_key, merge.root_key)))
        keys = list(root.primary_key or root.merge_key)
        brought = self.frame(self._staged.keys(keys))
        doomed = self.stored(self.root, [*keys, root.row_key]).join(brought, keys, "left_semi")
        return doomed.select(F.col(in_spark(root.row_key)).alias(merge.root_key))

    def _childless(self, row_key: str, root_key: str) -> str:
        """Return a query for the roots of the load for which it has no row of this table."""
        query = f"SELECT DISTINCT {quoted(row_key)} AS {quoted(root_key)} FROM {self._staged.all}"
        if self._nested is None:
            return query
        return f"{query} WHERE {quoted(row_key)} NOT IN (SELECT {quoted(root_key)} FROM {self._nested})"


class AllKeys(_Marks):
    """All that a table holds."""

    def __init__(self, engine: Engine, table: DltTable) -> None:
        super().__init__(engine, table, table)

    def keys(self) -> DataFrame:
        return self.stored(self.table, self.table.declared.key).distinct()
