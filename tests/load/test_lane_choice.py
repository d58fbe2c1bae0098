"""Which lane a batch takes, and that no more than a small batch is ever brought into the process."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.load.collected import collect
from tests.folder import Folder

pytestmark = pytest.mark.spark

TEXT = "x" * 1000


class Seen:
    """Counts rows that were brought into this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[int] = []

        def counting(*arguments: Any) -> Any:
            found = collect(*arguments)
            self.rows.append(found.read)
            return found

        monkeypatch.setattr("esker.load.modes.keyed.collect", counting)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


def project(make_folder: Callable[..., Folder], format: str, **small_lane: Any) -> Folder:
    pipeline = Folder.files_pipeline("landing/*", format, mode="upsert", key=["id"], small_lane=small_lane)
    return make_folder(pipelines={"sales": pipeline})


def write_parquet(path: Path, rows: int) -> None:
    pq.write_table(pa.table({"id": range(rows), "text": [TEXT] * rows}), path, compression="zstd")


def test_what_is_small_comes_into_the_process(make_folder: Callable[..., Folder], seen: Seen) -> None:
    folder = project(make_folder, "parquet")
    write_parquet(folder.path / "landing/a.parquet", 1000)
    assert folder.run().rows.inserted == 1000
    assert seen.rows == [1000]


def test_packed_columns_count_by_what_they_hold(make_folder: Callable[..., Folder], seen: Seen) -> None:
    """A million characters in a file of some kilobytes."""
    folder = project(make_folder, "parquet", max_bytes="100kB")
    # Texts that differ: of equal ones a file says once what they are.
    rows = {"id": range(1000), "text": [f"{number}{TEXT}" for number in range(1000)]}
    pq.write_table(pa.table(rows), folder.path / "landing/a.parquet", compression="zstd")
    assert (folder.path / "landing/a.parquet").stat().st_size < 100_000
    assert folder.run().rows.inserted == 1000
    assert seen.rows == []


def test_rows_that_a_footer_tells(make_folder: Callable[..., Folder], seen: Seen) -> None:
    folder = project(make_folder, "parquet", max_rows=999)
    write_parquet(folder.path / "landing/a.parquet", 1000)
    assert folder.run().rows.inserted == 1000
    assert seen.rows == []


def test_packed_text(make_folder: Callable[..., Folder], seen: Seen) -> None:
    folder = project(make_folder, "csv", max_bytes="100kB")
    lines = "id,text\n" + "".join(f"{number},{TEXT}{number}\n" for number in range(2000))
    (folder.path / "landing/a.csv.gz").write_bytes(gzip.compress(lines.encode()))
    assert 10_000 < (folder.path / "landing/a.csv.gz").stat().st_size < 100_000
    assert folder.run().rows.inserted == 2000
    assert seen.rows == []


def test_rows_that_nobody_has_counted(make_folder: Callable[..., Folder], seen: Seen) -> None:
    """One row more than a small batch has is enough to know."""
    folder = project(make_folder, "csv", max_rows=100)
    folder.write_csv("landing/a.csv", ["id"], [(number,) for number in range(1000)])
    project_ = folder.open()
    assert project_.run("sales").rows.inserted == 1000
    assert seen.rows == [101]
    frame = project_.engine.spark.range(5000).selectExpr("cast(id + 1000 as int) AS id")
    assert project_.load("sales", frame).rows.inserted == 5000
    assert all(rows <= 101 for rows in seen.rows)
    assert project_.table("shop.sales").count() == 6000


@pytest.mark.parametrize(("rows", "small"), [(800, True), (801, False)])
def test_rows_that_are_here_already(
    make_folder: Callable[..., Folder], seen: Seen, rows: int, small: bool
) -> None:
    """Rows that are handed over as Arrow lie in this process: eight times as many are few."""
    folder = project(make_folder, "parquet", max_rows=100)
    project_ = folder.open()
    arrow = pa.table({"id": range(rows), "text": ["x"] * rows})
    assert project_.load("sales", arrow).rows.inserted == rows
    assert seen.rows == ([rows] if small else [])
    assert project_.table("shop.sales").count() == rows


def test_rows_that_must_go_to_spark_first(make_folder: Callable[..., Folder], seen: Seen) -> None:
    """Whether a row is a delete is told by SQL: no row may be cut off on the way there and back."""
    pipeline = Folder.files_pipeline(
        "landing/*",
        "parquet",
        mode="upsert",
        key=["id"],
        deletes="hard",
        delete_when="id < 10",
        small_lane={"max_rows": 100},
    )
    project_ = make_folder(pipelines={"sales": pipeline}).open()
    loaded = project_.load("sales", pa.table({"id": range(500)}))
    assert (loaded.rows.inserted, loaded.rows.ignored) == (490, 10)
    assert seen.rows == []
