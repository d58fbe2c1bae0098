"""Frames that are computed once and kept on the executors, until they are given up."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from esker.engine.compat import frame_of
from esker.engine.failures import JvmFailure, explained
from esker.engine.session import Engine


class KeptFrames:
    """The frames that a piece of work keeps, in the order in which they came."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._frames: list[DataFrame] = []

    def __len__(self) -> int:
        return len(self._frames)

    def keep(self, frame: DataFrame, level: StorageLevel = StorageLevel.MEMORY_AND_DISK) -> DataFrame:
        """Return a frame whose rows are computed when they are first needed, and kept from then on.

        Its plan is nothing but the kept rows. Spark would otherwise look for them by comparing plans, which
        it fails at where a plan has a subquery and stands twice in a statement: all is computed anew. And
        it plans all that led to them again, with each statement.
        """
        return frame_of(self._engine.spark, self._persisted(frame, level))

    def keep_once(self, frame: DataFrame, level: StorageLevel = StorageLevel.MEMORY_AND_DISK) -> DataFrame:
        """Return a frame whose rows are never computed a second time: for rows that would differ then.

        A source without a fixed order gives each row another number. If an executor ends with some of the
        rows, whatever needs them raises RowsLost instead of reading them again.
        """
        relation = self._persisted(frame, level)
        if not self._engine.is_alone:
            with explained("cannot read the rows", self._engine.log, reads_source=True):
                blocks = relation.cacheBuilder().cachedColumnBuffers()
                blocks.localCheckpoint()
                # Before anything is found out about them: until the first job ends they can be computed anew.
                blocks.count()
        return frame_of(self._engine.spark, relation)

    def _persisted(self, frame: DataFrame, level: StorageLevel) -> Any:
        spark: Any = self._engine.spark
        kept: Any = frame.persist(level)
        self._frames.append(kept)
        cache = spark._jsparkSession.sharedState().cacheManager()
        return cache.lookupCachedData(kept._jdf).get().cachedRepresentation()

    def let_go(self, since: int = 0) -> None:
        """Give up the frames that were kept from a number on, and those that hang on others first.

        Spark would compute what hangs on a frame anew, from files that may have been expired by now.
        """
        while len(self._frames) > since:
            with suppress(*JvmFailure):
                self._frames.pop().unpersist()
