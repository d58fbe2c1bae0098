"""Spark's own parser of SQL, for what Esker must know of a text before Spark runs it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def sql_parser(spark: SparkSession) -> Any:
    """Return Spark's parser, a Java object; only for this package."""
    session: Any = spark
    return session._jsparkSession.sessionState().sqlParser()


def parts_of(spark: SparkSession, name: str) -> tuple[str, ...]:
    """Return the parts of a dotted name, in quotes or not; none of an empty one. Raises ParseException."""
    if not name:
        return ()
    parts = sql_parser(spark).parseMultipartIdentifier(name)
    return tuple(str(parts.apply(index)) for index in range(parts.size()))
