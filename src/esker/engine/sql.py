"""Names of tables on their way into SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from esker.project.types import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def identifier(*parts: str) -> str:
    """Return a dotted, quoted identifier: `identifier("lake", "a.b")` gives `` `lake`.`a`.`b` ``."""
    return ".".join(quoted(name) for part in parts for name in part.split("."))


def parts_of(spark: SparkSession, name: str) -> tuple[str, ...]:
    """Return the parts of a dotted name, in quotes or not; none of an empty one. Raises ParseException."""
    if not name:
        return ()
    session: Any = spark
    found = session._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(name)
    return tuple(str(found.apply(index)) for index in range(found.size()))
