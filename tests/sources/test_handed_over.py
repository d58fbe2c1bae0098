"""Rows that a program hands over: many go to Spark through a file, and are what they were."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from esker.errors import UnsuitableData
from esker.sources import handed_over
from tests.folder import Folder

pytestmark = pytest.mark.spark

MOMENT = datetime(2026, 10, 25, 0, 30, 15, 123456, tzinfo=UTC)
ROWS = pa.table(
    {
        "id": pa.array(range(2000), pa.int32()),
        "größe in m": pa.array([1.5, None] * 1000, pa.float32()),
        "text": pa.array(["ä\n,", None] * 1000, pa.large_string()),
        "day": pa.array([date(1850, 1, 1), None] * 1000),
        "at": pa.array([MOMENT, None] * 1000, pa.timestamp("us", tz="UTC")),
        "local": pa.array([MOMENT.replace(tzinfo=None), None] * 1000, pa.timestamp("us")),
        "amount": pa.array([Decimal("12345.67"), None] * 1000, pa.decimal128(12, 2)),
        "small": pa.array([-7, None] * 1000, pa.int16()),
        "raw": pa.array([b"\0\xff", None] * 1000),
        "yes": pa.array([True, None] * 1000),
        "tags": pa.array([["a", None], None] * 1000),
        "place": pa.array([{"x": 1, "y": None}, None] * 1000, pa.struct({"x": pa.int64(), "y": pa.string()})),
        "names": pa.array([[("de", "Haus")], None] * 1000, pa.map_(pa.string(), pa.string())),
        "kind": pa.array(["a", "b"] * 1000).dictionary_encode(),
        "nothing": pa.nulls(2000),
    }
)


def loaded(folder: Folder) -> list[Any]:
    project = folder.open()
    assert project.load("sales", ROWS).rows.inserted == 2000
    return sorted(project.table("shop.sales").collect(), key=lambda row: row.id)


@pytest.mark.parametrize(
    "keys", [{}, {"mode": "upsert", "key": ["id"], "lane": "large"}], ids=["append", "upsert"]
)
def test_through_a_file(
    make_folder: Callable[..., Folder], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, keys: dict[str, Any]
) -> None:
    """The same table as from memory, in the same order of arrival, and nothing is left behind."""
    pipelines = {"sales": Folder.files_pipeline(**keys)}
    plain = loaded(make_folder("plain", pipelines=pipelines))
    monkeypatch.setattr(handed_over, "_IN_MEMORY", 0)
    monkeypatch.setattr(handed_over, "_GROUP", 300)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "on their way"))
    (tmp_path / "on their way").mkdir()
    through = loaded(make_folder("through", pipelines=pipelines))
    assert through == plain
    assert through[0].asDict(recursive=True)["at"] is not None
    assert list((tmp_path / "on their way").iterdir()) == []


def test_the_last_of_equal_keys_wins(
    make_folder: Callable[..., Folder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handed_over, "_IN_MEMORY", 0)
    monkeypatch.setattr(handed_over, "_GROUP", 100)
    pipelines = {"sales": Folder.files_pipeline(mode="upsert", key=["id"], lane="large")}
    folder = make_folder(pipelines=pipelines)
    rows = pa.table({"id": list(range(50)) * 20, "n": range(1000)})
    assert folder.open().load("sales", rows).rows.duplicates == 950
    assert folder.rows("shop.sales", "id", "n") == sorted(((n, 950 + n) for n in range(50)), key=repr)


def test_what_would_be_cut_is_refused(
    make_folder: Callable[..., Folder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handed_over, "_IN_MEMORY", 0)
    project = make_folder(pipelines={"sales": Folder.files_pipeline()}).open()
    rows = pa.table({"at": pa.array([1_000_000_001], pa.timestamp("ns", tz="UTC"))})
    with pytest.raises(UnsuitableData):
        project.load("sales", rows)
