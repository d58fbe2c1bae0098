"""`show` and `peek` tell the truth about tables and sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from esker.cli.main import app
from esker.errors import InvalidFilter, TableNotFound
from tests.folder import Folder

pytestmark = pytest.mark.spark


@pytest.fixture
def sales(make_folder: Callable[..., Folder]) -> Folder:
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(partition_by=["day"])})
    folder.write_csv(
        "landing/a.csv",
        ["id", "day", "note"],
        [(1, "2026-01-01", "a"), (2, "2026-01-01", ""), (3, "2026-01-02", "c")],
    )
    folder.run()
    return folder


def test_show_counts_files_rows_and_values(sales: Folder) -> None:
    """Schema, partitions, snapshots, statistics and rows are those of the table."""
    report = sales.open().show("shop.sales", limit=2)
    assert (report.files.files, report.files.rows) == (2, 3)
    statistics = {found.column: found for found in report.statistics}
    assert (statistics["id"].lowest, statistics["id"].highest, statistics["id"].nulls) == ("1", "3", 0)
    assert statistics["note"].nulls == 1
    assert statistics["day"].highest == "2026-01-02"
    assert [line.changeset for line in report.snapshots] == [1]
    assert report.snapshots[0].total_records == 3
    assert len(report.rows) == 2


@pytest.mark.parametrize("version", [2, 3])
def test_deleted_rows_are_left_out_and_told(make_folder: Callable[..., Folder], version: int) -> None:
    """Rows that are deleted stay in the files until these are rewritten: who counts must know."""
    keys: dict[str, Any] = {
        "mode": "upsert",
        "key": ["id"],
        "deletes": "hard",
        "delete_when": "note = 'gone'",
    }
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(format_version=version, **keys)})
    folder.write_csv("landing/a.csv", ["id", "note"], [(n, "a") for n in range(9)])
    folder.run()
    folder.write_csv("landing/b.csv", ["id", "note"], [(1, "b"), (2, "gone"), (3, "gone")])
    folder.run()
    opened = folder.open()
    statistics = opened.metadata("shop.sales").statistics
    assert statistics is not None
    files = statistics.files
    assert (files.rows, files.deleted, files.is_exact) == (7, 3, True)
    assert opened.table("shop.sales").count() == 7
    assert [line.total_records for line in opened.show("shop.sales").snapshots] == [7, 9]
    shown = CliRunner().invoke(app, ["show", "shop.sales", "--project", str(folder.path)]).stdout
    assert "7 rows and 3 deleted ones in 2 files" in shown
    assert "columns (deleted rows count until their files are rewritten)" in shown


def test_show_counts_nulls_of_files_that_lack_the_column(sales: Folder) -> None:
    """Rows from before a column was added have no value in it."""
    sales.write_csv(
        "landing/b.csv", ["id", "day", "colour"], [(4, "2026-01-02", "red"), (5, "2026-01-02", "")]
    )
    sales.run()
    statistics = {found.column: found for found in sales.open().show("shop.sales").statistics}
    assert statistics["colour"].nulls == 4
    assert statistics["note"].nulls == 3
    assert statistics["id"].nulls == 0


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("parquet", {"id": 0, "s.a": 2, "s.late": 2, "late": 2, "quiet": None, "tags.element": None}),
        ("orc", {"id": 0, "s.a": 2, "s.late": 2, "late": 2, "quiet": None, "tags.element": None}),
        (
            "avro",
            {"id": None, "s.a": None, "s.late": None, "late": None, "quiet": None, "tags.element": None},
        ),
    ],
)
def test_nulls_that_nobody_counted_are_unknown(
    folder: Folder, format: str, expected: dict[str, int | None]
) -> None:
    """Null structs count for their fields; lists, columns without statistics and Avro files tell nothing."""
    engine = folder.open().engine
    engine.open_catalog("lake")
    spark = engine.spark
    spark.sql("CREATE NAMESPACE lake.shop")
    spark.sql(
        "CREATE TABLE lake.shop.odd (id int, s struct<a: int>, tags array<string>, quiet string) "
        f"USING iceberg TBLPROPERTIES ('write.format.default' = '{format}', "
        "'write.metadata.metrics.column.quiet' = 'none')"
    )
    spark.sql(
        "INSERT INTO lake.shop.odd VALUES (1, null, array('a', null), 'x'), "
        "(2, named_struct('a', null), null, null)"
    )
    spark.sql("ALTER TABLE lake.shop.odd ADD COLUMNS (late string, s.late string)")
    spark.sql("INSERT INTO lake.shop.odd VALUES (3, named_struct('a', 1, 'late', 'x'), array('b'), 'x', 'x')")
    report = folder.open().show("shop.odd")
    assert {found.column: found.nulls for found in report.statistics} == expected


def test_filter_tells_what_it_would_read(sales: Folder) -> None:
    """A filter on the partition column reads one file; one on another column reads what may match."""
    opened = sales.open()
    whole = opened.show("shop.sales").files
    by_day = opened.show("shop.sales", where="day = date '2026-01-02'")
    assert by_day.filtered is not None
    assert (by_day.filtered.files.files, by_day.filtered.files.rows) == (1, 1)
    assert by_day.filtered.files.bytes < whole.bytes
    assert [row["id"] for row in by_day.rows] == [3]
    none = opened.show("shop.sales", where="id > 1000").filtered
    assert none is not None
    assert none.files.files == 0


@pytest.mark.parametrize("where", ["nosuch = 1", "day >", "id = 'x' or ("])
def test_filter_that_makes_no_sense(sales: Folder, where: str) -> None:
    """A wrong filter is an error that repeats it, exit status 2."""
    with pytest.raises(InvalidFilter) as caught:
        sales.open().show("shop.sales", where=where)
    assert where in caught.value.message
    assert caught.value.reason
    assert caught.value.exit_status == 2


def test_filter_that_cannot_prune_still_filters(sales: Folder) -> None:
    """A condition that files' statistics cannot answer reads all files and shows the right rows."""
    report = sales.open().show("shop.sales", where="length(note) = 1 and id % 2 = 1")
    assert report.filtered is not None
    assert report.filtered.files.files == 2
    assert sorted(row["id"] for row in report.rows) == [1, 3]


def test_unknown_table_names_those_that_are_there(sales: Folder) -> None:
    """A misspelt table is an error that lists the tables."""
    with pytest.raises(TableNotFound) as caught:
        sales.open().show("shop.sale")
    assert "shop.sales" in caught.value.reason


def test_peek_shows_rows_and_loads_nothing(sales: Folder) -> None:
    """Rows come from the source, loaded or not; the ledger does not move."""
    sales.write_csv("landing/0 new.csv", ["id", "day"], [(9, "2026-05-05")])
    peeked = sales.open().peek("sales", limit=1)
    assert peeked.columns == ("id", "day")
    assert peeked.rows == [{"id": "9", "day": "2026-05-05"}]
    assert (peeked.origins, peeked.whole) == (("0 new.csv",), "2 files")
    assert sales.run().rows.inserted == 1


def test_peek_says_that_there_is_more(sales: Folder) -> None:
    """People are told which file the rows come from, and how many there are."""
    sales.write_csv("landing/b.csv", ["id", "day", "note"], [(9, "2026-05-05", "")])
    shown = CliRunner().invoke(app, ["peek", "sales", "--project", str(sales.path)]).stdout
    assert shown.splitlines()[-1] == "from a.csv; the source has 2 files"
    sales.write("landing/0.csv", "id,day,note\n")
    shown = CliRunner().invoke(app, ["peek", "sales", "--project", str(sales.path)]).stdout
    assert shown == "no rows here; the source has 3 files\n"
    for file in sales.path.glob("landing/*.csv"):
        file.unlink()
    shown = CliRunner().invoke(app, ["peek", "sales", "--project", str(sales.path)]).stdout
    assert shown == "no rows here; the source has nothing\n"
