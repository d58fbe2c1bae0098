"""How a value is compared with the text that it was read from."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from esker.contracts.check import _digits, _small_letters
from tests.folder import Folder

pytestmark = pytest.mark.spark


def test_digits_of_a_number_whatever_its_letters(folder: Folder) -> None:
    """Only its own letters are there: the sign of an exponent, or what makes it no plain number."""
    spark = folder.open().engine.spark
    texts = ["1E5", "1e5", "-0.10", "+12.50e-3", "1.0E+2", "0x1F", "1D", " 1 ", "00"]
    rows = spark.createDataFrame([(text,) for text in texts], "text string")
    found = [row[0] for row in rows.select(_digits(F.col("text"))).collect()]
    assert found == ["1", "1", "1", "125", "1", "x1f", "1d", "1", ""]


def test_no_table_of_all_characters_is_made(folder: Folder) -> None:
    """The first `lower` of a Java takes it seconds of a run that has no others."""
    _ = folder.open().engine.spark
    for made in (_digits(F.col("text")), _small_letters(F.col("text"))):
        assert "translate" in str(made)
        assert "lower" not in str(made)
