"""Rows as transforms see them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

import pyarrow as pa
import pytest

from esker.deliver.transform import Failed, Transform, as_rows, rows_as_they_are
from esker.project import secrets

MOMENTS = [datetime(1, 1, 1, tzinfo=UTC), None, datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)]


@pytest.mark.parametrize("zone", ["UTC", None, "Europe/Berlin"])
def test_rows_are_those_that_arrow_makes(zone: str | None) -> None:
    """Also where they are made in another way, as it is faster."""
    rows = pa.table(
        {
            "id": [1, 2, 3],
            "at": pa.array(MOMENTS, pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone)),
            "map": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    assert as_rows(rows) == rows.to_pylist(maps_as_pydicts="lossy")


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()])
def test_a_row_that_python_cannot_hold_fails_alone(kind: pa.DataType) -> None:
    """There are no days behind the year 9999. The letter shows the value all the same."""
    far = 4_000_000 if kind == pa.date32() else 400_000_000_000_000_000
    first, second, third = rows_as_they_are(pa.table({"id": [1, 2, 3], "at": pa.array([0, far, 1], kind)}))
    assert isinstance(first, dict)
    assert isinstance(third, dict)
    assert (first["id"], third["id"]) == (1, 3)
    assert isinstance(second, Failed)
    assert second.given is not None
    assert second.given["id"] == "2"
    assert str(second.given["at"])[:2] in ("12", "14")


@pytest.mark.parametrize("per", ["row", "batch"])
def test_what_a_transform_says_of_a_row_holds_no_secret(
    per: Literal["row", "batch"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letters stand in the lake, for all who may read it. Nor does it hold half a secret, where it is cut."""
    monkeypatch.setattr(secrets, "_known_secrets", set())
    secrets.remember_secret("hunter22")

    def refuse(given: Any) -> Any:
        raise ValueError("postgresql://esker:hunter22@db " + "x" * 1_953 + "hunter22")

    [failed] = Transform(refuse, per, ("id",)).bodies(pa.table({"id": [1]}))
    assert isinstance(failed, Failed)
    assert failed.error.startswith("ValueError: postgresql://esker:********@db x")
    assert "hunt" not in failed.error
    assert len(failed.error) == 2_000
