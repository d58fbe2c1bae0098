"""What every file format shares."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from esker.sources.files.formats import union
from tests.folder import Folder

pytestmark = pytest.mark.spark


def test_union_of_many_frames_is_shallow(folder: Folder) -> None:
    """A hundred frames with a column of their own: each row keeps its value, in a plan of few levels."""
    spark = folder.open().engine.spark
    frames = [
        spark.range(1).select(F.lit(str(index)).alias("who"), F.lit(index).alias(f"c{index}"))
        for index in range(100)
    ]
    together = union(frames)
    assert [together.where(f"c{index} is not null").first().who for index in (0, 57, 99)] == [  # type: ignore[union-attr]
        "0",
        "57",
        "99",
    ]
    deepest = max(len(line) - len(line.lstrip(" :+-")) for line in _analyzed(together).splitlines())
    assert deepest < 3 * 30  # three characters a level; a chain of unions has more than a hundred levels


def _analyzed(frame: object) -> str:
    return str(frame._jdf.queryExecution().analyzed().toString())  # type: ignore[attr-defined]
