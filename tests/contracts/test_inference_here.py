"""Types that are found out without Spark are those that Spark finds."""

from __future__ import annotations

import random

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from esker.contracts.inference import infer_columns
from esker.contracts.inference_here import infer_from
from tests.folder import Folder

KINDS: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "FALSE", "True"),
    "bigint": ("0", "-0", "7", "-9223372036854775808", "9223372036854775807"),
    "double": ("1.5", "-0.25", "1e99", "1E-99", "12345678901234.5", "0.0", "123456789012345"),
    "date": ("2026-01-01", "1582-10-10", "0001-01-01", "9999-12-31", "2024-02-29"),
    "timestamp": (
        *("2026-01-01 10:00", "2026-01-01T10:00:00", "0001-01-01 00:00:00.1", "2026-01-01T23:59:59.123456Z"),
        *("9999-12-31 23:59:59.999999", "2026-01-01T10:00Z"),
    ),
}
ODD = (
    *("falſe", "007", "+7", "9223372036854775808", "-9223372036854775809", "1_000", " 1", "1 ", "٣", "１"),
    *(
        ".5",
        "5.",
        "1e100",
        "1234567890123456",
        "1.23456789012345678",
        "NaN",
        "Infinity",
        "0x10",
        "1e5",
        "--1",
    ),
    *("2026-02-30", "0000-01-01", "2026-1-1", "2026-01-01 ", "10000-01-01", "2026-13-01", "2025-02-29"),
    *("2026-01-01 24:00", "2026-01-01T10:00:60", "2026-01-01T10:00:00+02:00", "2026-01-01T10:00-0530"),
    *("2026-01-01T10:00:00.1234567", "2026-01-01T10:00+19:00", "0000-01-01T00:00:00", "2026-01-01T25:00"),
    *("yes", "text", "2026-01-01\u2028", "1\u0085", "ＴＲＵＥ", "truE\u0130", "１２"),
)


def drawn(chance: random.Random) -> list[str | None]:
    """Return the values of a column: of one type mostly, with now and then another one or something odd."""
    pool: tuple[str, ...] = KINDS[chance.choice(list(KINDS))]
    if chance.random() < 0.3:
        pool += KINDS[chance.choice(list(KINDS))]
    values: list[str | None] = [chance.choice(pool) for _ in range(4)]
    if chance.random() < 0.5:
        values[chance.randrange(4)] = chance.choice(ODD)
    if chance.random() < 0.3:
        values[chance.randrange(4)] = chance.choice(("", None))
    return values if chance.random() < 0.97 else [chance.choice(("", None))] * 4


@pytest.mark.spark
def test_the_answer_is_that_of_spark_or_none(folder: Folder) -> None:
    """Beside the border of every type, alone and among others."""
    spark = folder.open().engine.spark
    seed = 21
    chance = random.Random(seed)
    alone = [[value] for kind in KINDS.values() for value in kind] + [[value] for value in ODD]
    columns: list[list[str | None]] = [[*values] * 4 for values in alone]
    columns += [drawn(chance) for _ in range(120)]
    answers, sure = 0, 0
    for begin in range(0, len(columns), 40):
        some = {f"c{index}": values for index, values in enumerate(columns[begin : begin + 40])}
        schema = StructType([StructField(name, StringType()) for name in some])
        frame = spark.createDataFrame(list(zip(*some.values(), strict=True)), schema)
        by_spark = {column.name: column for column in infer_columns(frame, list(some))}
        for name, values in some.items():
            here = infer_from({name: [value for value in values if value is not None]}, [name])
            answers += 1
            if here is not None:
                sure += 1
                expected = (by_spark[name],) if name in by_spark else ()
                assert here == expected, (seed, values)
    assert sure > answers * 0.7, "it is in doubt about few"


def test_a_column_in_doubt_leaves_all_to_spark() -> None:
    """Half an answer would need the job all the same."""
    values = {"id": ["1"], "at": ["2026-01-01T10:00:00+02:00"], "no": [], "empty": [""]}
    assert infer_from(values, ["id", "at"]) is None
    found = infer_from(values, ["id", "no", "empty"])
    assert found is not None
    assert {column.name: str(column.type) for column in found} == {"id": "bigint", "empty": "string"}
