"""Pandera as a rule engine: what a package that registers it under `esker.rules` would hold.

A contract names a schema: `implementation: {schema: module:name}`. Pandera looks at the rows part by part,
on the executors. What is wrong with the schema itself is found before that, on a part without rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pkgutil import resolve_name
from typing import Any

import pandas as pd
import pandera.pandas as pa
from pyspark.sql import DataFrame

from esker.engine.compat import to_arrow

PAYMENTS = pa.DataFrameSchema(
    {
        "amount": pa.Column(checks=pa.Check.in_range(1, 500), nullable=True),
        "terminal": pa.Column(checks=pa.Check.str_matches("^T[0-9]{4}$"), nullable=True),
    },
    checks=pa.Check(lambda rows: ~(rows["fee"] > rows["amount"]), name="fee_within_amount"),
)
OF_ANOTHER_TABLE = pa.DataFrameSchema({"merchant": pa.Column()})
STUMBLING = pa.DataFrameSchema(
    {"amount": pa.Column(checks=pa.Check(lambda values: values / 0 if values.empty else 1 / 0))}
)
NO_SCHEMA = "amount > 0"


def check(rows: DataFrame, rule: dict[str, Any]) -> DataFrame:
    """Return the rows that a schema refuses. Raises what is wrong with the schema itself."""
    schema = resolve_name(rule["schema"])
    if not isinstance(schema, pa.DataFrameSchema):
        raise TypeError(f"{rule['schema']} is no schema of pandera")
    refused(schema, to_arrow(rows.limit(0)).to_pandas())

    def look(parts: Iterable[Any]) -> Iterator[Any]:
        for part in parts:
            yield refused(schema, part)

    return rows.mapInPandas(look, "esker_row bigint, reason string")


def refused(schema: pa.DataFrameSchema, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers of the rows that a schema refuses, each with all that pandera says of it."""
    told: dict[int, set[str]] = {}
    try:
        schema.validate(rows.set_index("esker_row"), lazy=True)
    except pa.errors.SchemaErrors as error:
        cases = error.failure_cases
        if cases["index"].isna().any():
            raise  # a column is not there, or a check stumbled: no row is to blame
        for number, context, column, name in zip(
            cases["index"], cases["schema_context"], cases["column"], cases["check"], strict=True
        ):
            # A check of whole rows is told once for each of their columns.
            told.setdefault(number, set()).add(f"{column}: {name}" if context == "Column" else name)
    reasons = ["; ".join(sorted(each)) for each in told.values()]
    # Spark 4.1 takes no text of pandas 3 unless it is plain Python's.
    return pd.DataFrame({"esker_row": list(told), "reason": reasons}, dtype=object)
