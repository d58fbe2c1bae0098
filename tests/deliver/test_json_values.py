"""Values of rows in messages, and ids."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.deliver.json_values import as_json_value, id_of, key_texts


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Decimal("1.50"), "1.50"),
        (datetime(2026, 1, 2, 3, 4, 5, 600, UTC), "2026-01-02T03:04:05.000600+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (time(1, 2), "01:02:00"),
        (timedelta(minutes=2), 120.0),
        (b"\x00\xff", "AP8="),
        (math.nan, None),
        (math.inf, None),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({1: [Decimal(1)], "a": {"b": None}}, {"1": ["1"], "a": {"b": None}}),
        ((1, True, 2.5), [1, True, 2.5]),
    ],
)
def test_values_as_json_has_them(value: Any, wanted: Any) -> None:
    """Nothing is rounded, and all of it can be written as JSON."""
    assert as_json_value(value) == wanted
    json.dumps(as_json_value(value), allow_nan=False)


def test_what_json_does_not_have_is_an_error() -> None:
    """The row becomes a dead letter, and does not arrive as something else."""
    with pytest.raises(TypeError, match="object"):
        as_json_value({"a": object()})


@given(st.lists(st.text(), min_size=1, max_size=3), st.lists(st.text(), min_size=1, max_size=3))
def test_ids_are_equal_for_equal_keys_only(one: list[str], other: list[str]) -> None:
    """Of keys of several columns, too; and the key can be had back."""
    if len(one) == len(other):
        assert (id_of(*one) == id_of(*other)) == (one == other)
    assert key_texts(id_of(*one), len(one)) == one


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (7, "7"),
        (True, "true"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, 5, 120_000), "2026-01-02 03:04:05.12"),
        (Decimal("1E+2"), "100"),
    ],
)
def test_ids_are_texts_as_spark_has_them(value: Any, wanted: str) -> None:
    """So that rows can be found by their ids."""
    assert id_of(value) == wanted
