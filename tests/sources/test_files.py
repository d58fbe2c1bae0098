"""A files source reads every file exactly once, whatever its age, name or shape."""

from __future__ import annotations

import bz2
import gzip
import os
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.engine.pins import is_spark
from esker.errors import (
    BadRows,
    FileChanged,
    ReservedName,
    SourceMalformed,
    SourceNotFound,
    SourceUnreadable,
    TypeConflict,
)
from esker.events import Event, Reached, Step
from tests.folder import Folder

pytestmark = pytest.mark.spark


def test_every_file_is_loaded_once(folder: Folder) -> None:
    """A second run reads only files that it has not read, and says when there is nothing new."""
    folder.write_csv("landing/a.csv", ["id", "name"], [(1, "one"), (2, "two")])
    first = folder.run()
    assert (first.rows.read, first.rows.inserted, first.changeset) == (2, 2, 1)

    again = folder.run()
    assert (again.rows.read, again.changeset, again.snapshot_id) == (0, 1, first.snapshot_id)
    assert "nothing new" in again.notes[0]

    folder.write_csv("landing/b.csv", ["id", "name"], [(3, "three")])
    assert folder.run().rows.inserted == 1
    assert folder.rows() == [(1, "one"), (2, "two"), (3, "three")]


def test_late_file_with_an_old_time_is_loaded(folder: Folder) -> None:
    """Scenario 50: a file copied with its old modification time lands behind newer ones."""
    folder.write_csv("landing/new.csv", ["id"], [(1,)])
    folder.run()
    late = folder.write_csv("landing/0-late.csv", ["id"], [(2,)])
    os.utime(late, (1_000_000_000, 1_000_000_000))
    assert folder.run().rows.inserted == 1
    assert folder.rows() == [(1,), (2,)]


def test_changed_file_is_an_error_that_says_so(folder: Folder) -> None:
    """A loaded file that grows stops the run, names the file, and changes nothing."""
    path = folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    path.write_text("id\n1\n2\n")
    with pytest.raises(FileChanged) as caught:
        folder.run()
    assert "landing/a.csv" in caught.value.reason
    assert "5 bytes" in caught.value.reason
    assert "7 bytes" in caught.value.reason
    assert "on_changed: reload" in caught.value.remedy
    assert folder.rows() == [(1,)]


def test_changed_file_is_loaded_again_whole_when_told(folder: Folder) -> None:
    """With `on_changed: reload` a changed file's rows are added again, once."""
    folder.change(source={**folder.document["pipelines"]["sales"]["source"], "on_changed": "reload"})
    path = folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    path.write_text("id\n1\n2\n")
    assert folder.run().rows.inserted == 2
    assert folder.run().rows.inserted == 0
    assert folder.rows() == [(1,), (1,), (2,)]


def test_changed_file_is_left_alone_when_told(folder: Folder) -> None:
    """With `on_changed: ignore` a changed file is as good as loaded."""
    folder.change(source={**folder.document["pipelines"]["sales"]["source"], "on_changed": "ignore"})
    path = folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    path.write_text("id\n1\n2\n")
    folder.write_csv("landing/b.csv", ["id"], [(3,)])
    assert folder.run().rows.inserted == 1
    assert folder.rows() == [(1,), (3,)]


def test_file_that_changes_while_it_is_read_is_not_published(folder: Folder) -> None:
    """A producer that still writes is noticed before the commit; afterwards the whole file is loaded."""
    path = folder.write_csv("landing/a.csv", ["id"], [(1,)])

    def keep_writing(event: Event) -> None:
        if isinstance(event, Reached) and event.step is Step.STAGED:
            with path.open("a") as stream:
                stream.write("2\n")

    with pytest.raises(Exception, match="changed while it was read"):
        folder.run(listen=keep_writing)
    assert folder.rows() == []
    assert folder.run().rows.inserted == 2


def test_project_can_move_without_loading_again(folder: Folder, tmp_path: Path) -> None:
    """Relative paths are remembered relative: a moved project knows its files."""
    folder.document["catalog"] = {
        "type": "sqlite",
        "path": str(tmp_path / "catalog.db"),
        "warehouse": str(tmp_path / "warehouse"),
    }
    folder.save()
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    moved = folder.path.rename(tmp_path / "elsewhere with spaces, ünïcode")
    folder.path = moved
    assert folder.run().rows.inserted == 0
    assert folder.rows() == [(1,)]


def test_names_with_odd_characters_are_read(folder: Folder) -> None:
    """Spark takes brackets, stars, commas and percent signs as patterns; here they are names."""
    names = [
        "a b.csv",
        "c[1].csv",
        "d{x,y}.csv",
        "e%20f.csv",
        "g#h.csv",
        "ü.csv",
        "i,j.csv",
        "12:30.csv",
        "o?p.csv",
    ]
    for index, name in enumerate(names):
        folder.write_csv(f"landing/{name}", ["id"], [(index,)])
    assert folder.run().rows.inserted == len(names)
    assert folder.rows() == [(index,) for index in range(len(names))]
    assert folder.run().rows.inserted == 0


def test_hidden_and_unfinished_names_are_left_out(folder: Folder) -> None:
    """What Spark would skip silently is not taken as loaded: it is loaded once it has its real name."""
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.write_csv("landing/_b.csv", ["id"], [(2,)])
    folder.write_csv("landing/.c.csv", ["id"], [(3,)])
    assert folder.run().rows.inserted == 1
    (folder.path / "landing/_b.csv").rename(folder.path / "landing/b.csv")
    assert folder.run().rows.inserted == 1
    assert folder.rows() == [(1,), (2,)]


def test_folders_below_are_read_with_two_stars(folder: Folder) -> None:
    """`**` reaches into folders."""
    folder.change(source={"type": "files", "path": "landing/**/*.csv", "format": "csv"})
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.write_csv("landing/2026/11/b.csv", ["id"], [(2,)])
    folder.run()
    assert folder.rows() == [(1,), (2,)]


@pytest.mark.parametrize("pattern", ["./landing/*.csv", "{folder}/landing/*.csv", "landing/**/**/*.csv"])
def test_another_way_to_write_the_pattern_loads_nothing_twice(folder: Folder, pattern: str) -> None:
    """A file has one name in the record, however the pattern reaches it."""
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.write_csv("landing/sub/deep/b.csv", ["id"], [(2,)])
    folder.change(source={"type": "files", "path": "landing/**/*.csv", "format": "csv"})
    folder.run()
    pattern = pattern.format(folder=folder.path)
    folder.change(source={"type": "files", "path": pattern, "format": "csv"})
    assert folder.run().rows.read == 0
    folder.write_csv("landing/sub/c.csv", ["id"], [(3,)])
    folder.run()
    assert folder.rows() == [(1,), (2,), *([(3,)] if "**" in pattern else [])]


def test_many_files_make_many_batches(folder: Folder) -> None:
    """`max_files` bounds a batch; every batch is a publish of its own."""
    folder.change(source={"type": "files", "path": "landing/*.csv", "format": "csv", "max_files": 2})
    for index in range(5):
        folder.write_csv(f"landing/{index}.csv", ["id"], [(index,)])
    result = folder.run()
    assert (result.batches, result.changeset, result.rows.inserted) == (3, 3, 5)
    assert result.position["to"] is not None
    assert result.position["to"]["files"] == 5
    assert folder.run().batches == 0


def test_missing_folder_and_no_files(folder: Folder) -> None:
    """A folder that does not exist is an error; one without matching files is nothing to do."""
    assert folder.run().rows.read == 0
    folder.change(source={"type": "files", "path": "nowhere/*.csv", "format": "csv"})
    with pytest.raises(SourceNotFound) as caught:
        folder.run()
    assert caught.value.exit_status == 4
    assert "nowhere" in caught.value.message


def test_dangling_link_is_an_error_not_a_skipped_file(folder: Folder) -> None:
    """A file that cannot be opened stops the run with its name."""
    (folder.path / "landing/a.csv").symlink_to(folder.path / "gone.csv")
    with pytest.raises(SourceUnreadable, match=r"landing/a\.csv"):
        folder.run()


# --- CSV -----------------------------------------------------------------------------------------


def test_types_are_inferred_without_loss(folder: Folder) -> None:
    """Each column gets the narrowest type that every value has; what looks like a code stays text."""
    folder.write(
        "landing/a.csv",
        "n,x,flag,day,at,code,mixed,empty,big\n"
        "1,1.5,true,2026-01-02,2026-01-02T03:04:05Z,007,1,,123456789012345678901\n"
        "-2,2,FALSE,2026-12-31,2026-01-02 03:04,042,a,,1\n",
    )
    folder.run()
    table = folder.open().table("shop.sales")
    assert dict(table.dtypes) == {
        "n": "bigint",
        "x": "double",
        "flag": "boolean",
        "day": "date",
        "at": "timestamp",
        "code": "string",
        "mixed": "string",
        "big": "string",
    }
    row = table.where("n = 1").first()
    assert row is not None
    assert (row.day, row.at, row.code) == (date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5), "007")


def test_column_without_values_gets_its_type_later(folder: Folder) -> None:
    """Scenario 33: a column that is empty in the first file is typed by the first values."""
    folder.write("landing/a.csv", "id,amount\n1,\n")
    folder.run()
    assert dict(folder.open().table("shop.sales").dtypes) == {"id": "bigint"}
    folder.write("landing/b.csv", "id,amount\n2,2.5\n")
    folder.run()
    assert folder.rows("shop.sales", "id", "amount") == [(1, None), (2, 2.5)]


def test_columns_in_another_order_are_assigned_by_name(folder: Folder) -> None:
    """Two files with other headers in one batch: values land in their columns, missing ones are null."""
    folder.write("landing/a.csv", "id,name,city\n1,one,Turku\n")
    folder.write("landing/b.csv", "city,id\nLund,2\n")
    folder.write("landing/c.csv", "\ufeffname,id\nthree,3\n")
    folder.run()
    assert folder.rows("shop.sales", "id", "name", "city") == [
        (1, "one", "Turku"),
        (2, None, "Lund"),
        (3, "three", None),
    ]


def test_quotes_delimiters_and_line_breaks(make_folder: Callable[..., Folder]) -> None:
    """CSV as RFC 4180 writes it: doubled quotes, delimiters and line breaks inside quotes."""
    source = {"delimiter": ";", "multi_line": True}
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(source=source)})
    folder.write("landing/a.csv", 'id;text\n1;"say ""hi""; there"\n2;"two\nlines"\n3;back\\slash\n4;""\n5;\n')
    folder.run()
    assert folder.rows() == [
        (1, 'say "hi"; there'),
        (2, "two\nlines"),
        (3, "back\\slash"),
        (4, ""),
        (5, None),
    ]


def test_csv_without_header(make_folder: Callable[..., Folder]) -> None:
    """Without a header the declared columns name the values, in order."""
    pipeline = Folder.files_pipeline(source={"header": False}, columns={"id": "bigint", "name": "string"})
    folder = make_folder(pipelines={"sales": pipeline})
    folder.write("landing/a.csv", "1,one\n2,two\n")
    folder.run()
    assert folder.rows() == [(1, "one"), (2, "two")]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_packed_files_are_unpacked(folder: Folder, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    """A .gz or .bz2 file is read like the file in it."""
    folder.change(source={"type": "files", "path": "landing/*", "format": "csv"})
    (folder.path / f"landing/a.csv{suffix}").write_bytes(pack(b"id,name\n1,one\n"))
    folder.run()
    assert folder.rows() == [(1, "one")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("id,ID\n1,2\n", 'names column "ID" twice'),
        ("id,\n1,2\n", "column 2 of its header has no name"),
        (",,\nid,name\n1,2\n", "column 1 of its header has no name"),
    ],
)
def test_header_that_makes_no_sense(folder: Folder, text: str, why: str) -> None:
    """A header that cannot name columns is an error with the file's name."""
    folder.write("landing/a.csv", text)
    with pytest.raises(SourceMalformed) as caught:
        folder.run()
    assert why in caught.value.reason
    assert "landing/a.csv" in caught.value.message


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("bigint", "1.5", '"1.5" is no bigint'),
        ("bigint", "ten", '"ten" is no bigint'),
        ("decimal(4,2)", "1.234", '"1.234" is no decimal(4,2)'),
        ("decimal(4,2)", "123.4", '"123.4" is no decimal(4,2)'),
        ("date", "2026-02-30", '"2026-02-30" is no date'),
        ("date", "2026-02-03T10:00:00", "is no date"),
        ("double", "1d", '"1d" is no double'),
        ("boolean", "maybe", '"maybe" is no boolean'),
        ("timestamp", "soon", '"soon" is no timestamp'),
        ("timestamp", "12:30", '"12:30" is no timestamp'),
        ("timestamp_ntz", "2026-01-02T10:00:00+05:00", "is no timestamp_ntz"),
        ("decimal(38,2)", "1.999", "is no decimal(38,2)"),
    ],
)
def test_value_that_does_not_fit_is_never_silently_null(
    make_folder: Callable[..., Folder], kind: str, value: str, why: str
) -> None:
    """A value of another type stops the batch; the message has file, column and value."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(columns={"v": kind})})
    folder.write("landing/good.csv", "v\n\n")
    folder.write("landing/bad.csv", f"id,v\n1,{value}\n")
    with pytest.raises(BadRows) as caught:
        folder.run()
    assert caught.value.exit_status == 3
    assert (caught.value.count, caught.value.read) == (1, 1)
    assert "bad.csv" in caught.value.reason
    assert why in caught.value.reason
    assert folder.rows() == []
    assert list(folder.path.glob(".esker/warehouse/shop/sales/data/**/*.parquet")) == []


def test_values_at_the_edge_fit(make_folder: Callable[..., Folder]) -> None:
    """The checks refuse nothing that fits exactly."""
    columns = {"d": "decimal(4,2)", "n": "bigint", "day": "date", "x": "double"}
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(columns=columns)})
    folder.write(
        "landing/a.csv",
        "d,n,day,x\n99.99,9223372036854775807,2026-02-28,1e308\n-1.5, 7 ,2026-1-2,-0\n,,,\n",
    )
    folder.run()
    assert folder.rows() == [
        (Decimal("-1.50"), 7, date(2026, 1, 2), -0.0),
        (Decimal("99.99"), 9223372036854775807, date(2026, 2, 28), 1e308),
        (None, None, None, None),
    ]


def test_row_with_too_many_values_stops_the_batch(folder: Folder) -> None:
    """A line that does not have the header's columns is malformed, not cut."""
    folder.write("landing/a.csv", "id,name\n1,one\n2,two,extra\n")
    with pytest.raises(BadRows) as caught:
        folder.run()
    assert "2,two,extra" in caught.value.reason


def test_required_column_without_a_value(make_folder: Callable[..., Folder]) -> None:
    """A missing required value stops the batch, also when the whole column is missing."""
    columns = {"id": {"type": "bigint", "required": True}}
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(columns=columns)})
    folder.write("landing/a.csv", "id,name\n1,one\n,two\n")
    with pytest.raises(BadRows, match="1 of 2 rows") as caught:
        folder.run()
    assert 'column "id" is required' in caught.value.reason
    folder.write("landing/a.csv", "name\none\n")
    with pytest.raises(BadRows, match="1 of 1 rows"):
        folder.run()


# --- JSON lines ----------------------------------------------------------------------------------


@pytest.fixture
def json_folder(make_folder: Callable[..., Folder]) -> Folder:
    return make_folder(pipelines={"sales": Folder.files_pipeline("landing/*.jsonl", "jsonl")})


def test_nested_json_becomes_nested_columns(json_folder: Folder) -> None:
    """Structs, lists and nulls arrive as they are."""
    json_folder.write_jsonl(
        "landing/a.jsonl",
        [
            {"id": 1, "tags": ["a", "b"], "address": {"city": "Turku", "zip": "20100"}},
            {"id": 2, "tags": [], "address": None},
        ],
    )
    json_folder.run()
    rows = json_folder.open().table("shop.sales").orderBy("id").collect()
    assert rows[0].asDict(recursive=True) == {
        "id": 1,
        "tags": ["a", "b"],
        "address": {"city": "Turku", "zip": "20100"},
    }
    assert (rows[1].tags, rows[1].address) == ([], None)


def test_new_fields_become_new_columns_at_every_depth(json_folder: Folder) -> None:
    """A field that appears later is added, also inside structs and lists; older rows read null."""
    json_folder.write_jsonl("landing/a.jsonl", [{"id": 1, "a": {"x": 1}, "items": [{"n": 1}]}])
    json_folder.run()
    json_folder.write_jsonl(
        "landing/b.jsonl", [{"id": 2, "a": {"x": 2, "y": "new"}, "items": [{"n": 2, "q": 0.5}], "z": True}]
    )
    json_folder.run()
    rows = [
        row.asDict(recursive=True) for row in json_folder.open().table("shop.sales").orderBy("id").collect()
    ]
    assert rows == [
        {"id": 1, "a": {"x": 1, "y": None}, "items": [{"n": 1, "q": None}], "z": None},
        {"id": 2, "a": {"x": 2, "y": "new"}, "items": [{"n": 2, "q": 0.5}], "z": True},
    ]


def test_declared_types_are_read_from_json_exactly(json_folder: Folder) -> None:
    """Decimals keep their digits, dates and times are parsed strictly, run after run."""
    json_folder.change(columns={"d": "decimal(20,19)", "day": "date", "at": "timestamp", "n": "int"})
    quote = '"' if is_spark("3.5") else ""  # its reader would round the number, which is refused
    line = (
        f'{{"d": {quote}0.1234567890123456789{quote}, "day": "2026-01-02", '
        '"at": "2026-01-02T03:04:05Z", "n": 7}\n'
    )
    for name in ("a", "b"):
        json_folder.write(f"landing/{name}.jsonl", line)
        json_folder.run()
    row = (Decimal("0.1234567890123456789"), date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5), 7)
    assert json_folder.rows("shop.sales", "d", "day", "at", "n") == [row, row]
    json_folder.write("landing/c.jsonl", '{"at": 1700000000}\n')
    with pytest.raises(BadRows, match="1 of 1") as caught:
        json_folder.run()
    assert '"1700000000" is no timestamp' in caught.value.reason
    json_folder.write("landing/c.jsonl", f'{{"d": {quote}0.12345678901234567891{quote}}}\n')
    with pytest.raises(BadRows) as caught:
        json_folder.run()
    assert '"0.12345678901234567891" is no decimal(20,19)' in caught.value.reason


def test_json_name_in_another_case_is_not_read_as_null(json_folder: Folder) -> None:
    """Spark's parser matches names letter by letter: another case would be null in every row."""
    json_folder.write_jsonl("landing/a.jsonl", [{"id": 1}])
    json_folder.run()
    json_folder.write_jsonl("landing/b.jsonl", [{"ID": 7}])
    with pytest.raises(TypeConflict) as caught:
        json_folder.run()
    assert 'column "id" is written "ID" in the source' in caught.value.reason
    assert json_folder.rows() == [(1,)]


def test_malformed_line_stops_the_batch(json_folder: Folder) -> None:
    """A broken line is shown with its text; nothing of the batch is published."""
    json_folder.write("landing/a.jsonl", '{"id": 1}\n{"id": 2\n')
    with pytest.raises(BadRows) as caught:
        json_folder.run()
    assert '{"id": 2' in caught.value.reason
    assert json_folder.rows() == []


def test_value_of_another_type_stops_the_batch(json_folder: Folder) -> None:
    """Text where the table has a number is not read as null."""
    json_folder.write_jsonl("landing/a.jsonl", [{"id": 1}])
    json_folder.run()
    json_folder.write_jsonl("landing/b.jsonl", [{"id": "two"}])
    with pytest.raises((BadRows, TypeConflict)) as caught:
        json_folder.run()
    assert "id" in caught.value.reason
    assert json_folder.rows() == [(1,)]


# --- Parquet -------------------------------------------------------------------------------------


@pytest.fixture
def parquet_folder(make_folder: Callable[..., Folder]) -> Folder:
    return make_folder(pipelines={"sales": Folder.files_pipeline("landing/*.parquet", "parquet")})


def write_parquet(folder: Folder, name: str, columns: dict[str, Any]) -> None:
    pq.write_table(pa.table(columns), folder.path / "landing" / name)


def test_parquet_files_with_other_columns_in_one_batch(parquet_folder: Folder) -> None:
    """No column of any file is dropped, whichever file Spark looks at first."""
    write_parquet(parquet_folder, "a.parquet", {"id": pa.array([1], pa.int64()), "a": ["x"]})
    write_parquet(parquet_folder, "b.parquet", {"id": pa.array([2], pa.int64()), "b": [2.5]})
    parquet_folder.run()
    assert parquet_folder.rows("shop.sales", "id", "a", "b") == [(1, "x", None), (2, None, 2.5)]


def test_narrower_types_are_widened_and_others_refused(parquet_folder: Folder) -> None:
    """int goes into bigint; double does not, because digits would be lost."""
    write_parquet(parquet_folder, "a.parquet", {"n": pa.array([1], pa.int64()), "s": ["x"]})
    parquet_folder.run()
    write_parquet(
        parquet_folder, "b.parquet", {"n": pa.array([2], pa.int32()), "s": pa.array([5], pa.int16())}
    )
    parquet_folder.run()
    assert parquet_folder.rows() == [(1, "x"), (2, "5")]
    write_parquet(parquet_folder, "c.parquet", {"n": [3.5]})
    with pytest.raises(TypeConflict) as caught:
        parquet_folder.run()
    assert 'column "n" is bigint in the table and double in the source' in caught.value.reason


def test_declared_type_that_would_lose_digits_is_refused_at_once(parquet_folder: Folder) -> None:
    """A new table is compared with the source like an old one: 1.9 never becomes 1."""
    parquet_folder.change(columns={"n": "bigint"})
    write_parquet(parquet_folder, "a.parquet", {"n": [1.9]})
    with pytest.raises(TypeConflict, match="other types"):
        parquet_folder.run()


def test_column_name_that_belongs_to_esker(parquet_folder: Folder) -> None:
    """Names that begin with _esker_ are refused, whatever the format."""
    write_parquet(parquet_folder, "a.parquet", {"id": [1], "_esker_origin": ["x"]})
    with pytest.raises(ReservedName):
        parquet_folder.run()


def test_names_with_dots_spaces_and_quotes(folder: Folder) -> None:
    """Column names are names, not expressions."""
    folder.write("landing/a.csv", '"a.b",c d,"e`f"\n1,2,3\n')
    folder.run()
    assert folder.open().table("shop.sales").columns == ["a.b", "c d", "e`f"]
    assert folder.rows() == [(1, 2, 3)]


def test_file_that_is_no_parquet(parquet_folder: Folder) -> None:
    """A broken file is named; the good ones wait with it."""
    write_parquet(parquet_folder, "a.parquet", {"id": [1]})
    (parquet_folder.path / "landing/b.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(SourceUnreadable) as caught:
        parquet_folder.run()
    assert "b.parquet" in caught.value.message
    assert caught.value.exit_status == 4
