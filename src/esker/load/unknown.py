"""Rows that carry columns which the table lacks, told apart from the others (`evolution: discard_row`)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from esker.contracts.check import BAD, payload
from esker.contracts.rules import BROKEN
from esker.project.reserved import is_own
from esker.project.types import columns_from_json, quoted

UNKNOWN = "_esker_unknown"
"""Column of an incoming frame: reason and payload of a row with more than the table has, else null."""
NEW_COLUMN = "column"
"""The rule that such a row breaks."""

Path = tuple[str, ...]


def with_unknown(frame: DataFrame, paths: Sequence[Path]) -> DataFrame:
    """Return a source's rows with UNKNOWN beside them, for columns that the table lacks."""
    carried = [(".".join(path), _carries(frame, path)) for path in paths]
    names = F.concat_ws(", ", *(F.when(is_there, F.lit(f'"{name}"')) for name, is_there in carried))
    sent = columns_from_json(frame.schema.jsonValue())
    own = ((c.name, F.col(quoted(c.name)), c.type) for c in sent if not is_own(c.name))
    told = F.struct(
        # Null where nothing is told: Arrow takes no struct that is null and has a field that never is.
        F.when(names != "", F.concat(F.lit("the table lacks the column "), names)).alias("reason"),
        payload(own, nulls=False).alias("payload"),
    )
    return frame.withColumn(UNKNOWN, F.when(names != "", told))


def forgiven(fitted: DataFrame) -> DataFrame:
    """Return fitted rows; what is wrong with one that is left out anyway does not count."""
    if UNKNOWN not in fitted.columns:
        return fitted
    is_known = F.col(UNKNOWN).isNull()
    bits = [name for name in fitted.columns if name.startswith(BROKEN)]
    told = {BAD: F.when(is_known, F.col(BAD))} if BAD in fitted.columns else {}
    return fitted.withColumns(told | {name: F.when(is_known, F.col(name)).otherwise(0) for name in bits})


def _carries(frame: DataFrame, path: Path) -> Expression:
    """Return whether a row has a value at a path. A column that is there and empty carries nothing."""
    name = next((name for name in frame.columns if name.lower() == path[0].lower()), None)
    if name is None:
        return F.lit(False)
    return _is_there(F.col(quoted(name)), frame.schema[name].dataType, path[1:])


def _is_there(value: Expression, kind: DataType, path: Path) -> Expression:
    if not path:
        return value.isNotNull()
    match kind:
        case StructType():
            field = next((f for f in kind.fields if f.name.lower() == path[0].lower()), None)
            if field is None:
                return F.lit(False)
            return F.coalesce(_is_there(value.getField(field.name), field.dataType, path[1:]), F.lit(False))
        case ArrayType():
            return F.coalesce(
                F.exists(value, lambda item: _is_there(item, kind.elementType, path[1:])), F.lit(False)
            )
        case MapType():
            items = F.map_values(value)
            return F.coalesce(
                F.exists(items, lambda item: _is_there(item, kind.valueType, path[1:])), F.lit(False)
            )
    return F.lit(False)
