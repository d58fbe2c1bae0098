"""Folders `name=value` are columns, parsed like all others."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.errors import BadRows, ColumnRefused, PartitionMissing
from esker.sources.files.partitions import folders_of
from tests.folder import Folder


def make(
    make_folder: Callable[..., Folder], format: str = "csv", partitions: Any = True, **keys: Any
) -> Folder:
    source = {"partitions": partitions}
    return make_folder(
        pipelines={"sales": Folder.files_pipeline("landing/**/*", format, source=source, **keys)}
    )


def write_parquet(folder: Folder, name: str, **columns: Any) -> None:
    path = folder.path / "landing" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.mark.spark
def test_folders_are_typed_columns(make_folder: Callable[..., Folder]) -> None:
    """Declared, found out, null, encoded; run after run."""
    folder = make(make_folder, "parquet", columns={"day": "date"})
    write_parquet(folder, "country=NL/day=2026-01-02/hour=7/a.parquet", id=[1, 2])
    write_parquet(folder, "country=a%2Fb c+%C3%A9/day=2026-01-03/hour=12/b.parquet", id=[3])
    write_parquet(folder, "country=__HIVE_DEFAULT_PARTITION__/day=2026-01-04/hour=0/a=b.parquet", id=[4])
    peeked = folder.open().peek("sales")
    assert peeked.columns == ("id", "country", "day", "hour")
    assert folder.run().rows.inserted == 4
    day = datetime.date
    assert folder.rows("shop.sales", "id", "country", "day", "hour") == [
        (1, "NL", day(2026, 1, 2), 7),
        (2, "NL", day(2026, 1, 2), 7),
        (3, "a/b c+é", day(2026, 1, 3), 12),
        (4, None, day(2026, 1, 4), 0),
    ]
    write_parquet(folder, "Country=BE/day=2026-01-05/hour=1/c.parquet", id=[5])
    assert folder.run().rows.inserted == 1
    write_parquet(folder, "country=BE/day=yesterday/hour=1/c.parquet", id=[6])
    with pytest.raises(BadRows) as caught:
        folder.run()
    assert "yesterday" in caught.value.reason


@pytest.mark.spark
def test_some_folders_of_text_files(make_folder: Callable[..., Folder]) -> None:
    """Only those that are named; files without a header have the other columns."""
    folder = make(make_folder, "csv", ["month"], columns={"id": "int", "month": "string", "name": "string"})
    source = folder.document["pipelines"]["sales"]["source"]
    folder.change(source={**source, "header": False})
    folder.write("landing/name=x/month=01/a.csv", "1,one\n")
    folder.write("landing/name=y/month=02/b.csv", "2,two\n")
    assert folder.run().rows.inserted == 2
    assert folder.rows("shop.sales", "id", "month", "name") == [(1, "01", "one"), (2, "02", "two")]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("partitions", "file", "error", "why"),
    [
        (["country", "day"], "landing/country=NL/c.jsonl", PartitionMissing, "partitions: [country, day]"),
        (True, "landing/country=NL/c.jsonl", PartitionMissing, 'day=1/a.jsonl" is in one'),
        (True, "landing/country=NL/day=1/country=BE/c.jsonl", ColumnRefused, "Two folders"),
        (True, "landing/country=NL/day=1/id=7/c.jsonl", PartitionMissing, "is in one"),
        (["country", "id"], "landing/country=NL/day=1/id=7/c.jsonl", ColumnRefused, "stands in the files"),
    ],
)
def test_paths_that_leave_it_open(
    make_folder: Callable[..., Folder], partitions: Any, file: str, error: Any, why: str
) -> None:
    folder = make(make_folder, "jsonl", partitions)
    if "id" not in str(partitions):
        folder.write("landing/country=NL/day=1/a.jsonl", '{"id": 1}\n')
    folder.write(file, '{"id": 2}\n')
    with pytest.raises(error) as caught:
        folder.run()
    assert why in caught.value.reason


def test_folders_of_a_path() -> None:
    assert folders_of("s3://b/a=1/x/b%20c=2%2F/f=3.csv") == {"a": "1", "b c": "2/"}
    assert folders_of("a=/b.csv") == {"a": ""}
    assert folders_of("/x/=1/b.csv") == {}
