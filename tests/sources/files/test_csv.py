"""A CSV file is loaded as it is written, or refused with its name, the reason and what to do."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest

from esker.errors import BadRows, EskerError, ReservedName, SourceMalformed
from tests.folder import Folder

pytestmark = pytest.mark.spark

MakeCsv = Callable[..., Folder]


@pytest.fixture
def make_csv(make_folder: Callable[..., Folder]) -> MakeCsv:
    """Make a project whose one pipeline reads CSV with these keys of the source."""

    def make(columns: dict[str, str] | None = None, **source: Any) -> Folder:
        pipeline = Folder.files_pipeline("landing/*", source=source, columns=columns or {})
        return make_folder(pipelines={"sales": pipeline})

    return make


def refused(folder: Folder, kind: type[EskerError] = SourceMalformed) -> EskerError:
    """Run, and return the error; nothing may have been loaded."""
    with pytest.raises(kind) as caught:
        folder.run()
    assert not list(folder.path.glob(".esker/warehouse/shop/sales/data/**/*.parquet"))
    return caught.value


@pytest.mark.parametrize(
    ("rows", "why", "remedy"),
    [
        ('1,"hello\nworld, again"\n', "a quote is not closed (1 line)", "multi_line: true"),
        ('1,a\n3,"unclosed\n', '3,"unclosed', "multi_line: true"),
        ('1,"abc"def\n', 'text follows a closing quote (1 line): 1,"abc"def', "Double the quotes"),
    ],
    ids=["line break", "end of file", "text behind"],
)
def test_quote_that_is_not_closed_is_refused(make_csv: MakeCsv, rows: str, why: str, remedy: str) -> None:
    """Spark makes two rows of a record with a line break, and closes a quote that is open."""
    folder = make_csv()
    folder.write("landing/good.csv", 'id,text\n1,"say ""hi"", there"\n2,""\n3,5" pipe\n4,"x" \n')
    folder.write("landing/odd.csv", "id,text\n" + rows)
    error = refused(folder)
    assert "landing/odd.csv" in error.message
    assert why in error.reason
    assert remedy in error.remedy


def test_quote_inside_a_value_is_a_character(make_csv: MakeCsv) -> None:
    """A value that does not begin with a quote may hold one, and quoting may be switched off."""
    folder = make_csv()
    folder.write("landing/a.csv", 'id,text\n1,5" pipe\n2,"x" \n')
    folder.run()
    assert folder.rows() == [(1, '5" pipe'), (2, "x")]
    folder.change(source={**folder.document["pipelines"]["sales"]["source"], "quote": ""})
    folder.write("landing/b.csv", 'id,text\n3,"unclosed\n')
    folder.run()
    assert (3, '"unclosed') in folder.rows()


def test_line_breaks_inside_quotes_stay_as_they_are(make_csv: MakeCsv) -> None:
    """With multi_line every line break inside quotes is kept, however the lines themselves end."""
    folder = make_csv(multi_line=True)
    for name, end in (("unix", "\n"), ("windows", "\r\n"), ("mac", "\r")):
        text = f'id,text{end}{name},"a\r\nb\nc\rd"{end}{name}2,plain{end}'
        (folder.path / f"landing/{name}.csv").write_bytes(text.encode())
    folder.run()
    texts = dict(folder.rows())
    assert {texts[name] for name in ("unix", "windows", "mac")} == {"a\r\nb\nc\rd"}
    assert {texts[f"{name}2"] for name in ("unix", "windows", "mac")} == {"plain"}


def test_quote_that_swallows_the_rest_of_the_file_is_refused(make_csv: MakeCsv) -> None:
    """With multi_line a quote that is never closed makes one value of all rows that follow."""
    folder = make_csv(multi_line=True)
    folder.write("landing/a.csv", 'id,text\n1,a\n2,"b\n3,c\n4,d\n')
    error = refused(folder)
    assert error.reason.startswith('line 3: a quote is not closed: "b')


def test_empty_null_and_quoted_values_are_told_apart(make_csv: MakeCsv) -> None:
    """Nothing is null, two quotes are the empty text, and a zero byte is a character."""
    folder = make_csv({"id": "bigint", "text": "string"})
    folder.write("landing/a.csv", 'id,text\n1,\n2,""\n3,\0\n')
    folder.run()
    assert folder.rows() == [(1, None), (2, ""), (3, "\0")]


def test_null_value_is_null_and_nothing_else(make_csv: MakeCsv) -> None:
    """With `null_value: NA` nothing is the empty text; NA in quotes cannot be told from null."""
    folder = make_csv({"id": "bigint", "text": "string"}, null_value="NA")
    folder.write("landing/a.csv", "id,text\n1,NA\n2,\n3,BANANA\nNA,x\n")
    folder.run()
    assert folder.rows() == [(1, None), (2, ""), (3, "BANANA"), (None, "x")]
    folder.write("landing/b.csv", 'id,text\n4,"NA"\n')
    with pytest.raises(SourceMalformed) as caught:
        folder.run()
    assert 'stands in quotes, and cannot be told from null (1 line): 4,"NA"' in caught.value.reason
    folder.change(source={**folder.document["pipelines"]["sales"]["source"], "multi_line": True})
    with pytest.raises(SourceMalformed) as caught:
        folder.run()
    assert "line 2: the text of null_value stands in quotes" in caught.value.reason


def test_column_of_empty_texts_is_a_column(make_csv: MakeCsv) -> None:
    """A quoted empty text is a value: the column is not left out of a new table."""
    folder = make_csv()
    folder.write("landing/a.csv", 'id,note,nothing\n1,"",\n2,"",\n')
    folder.run()
    assert dict(folder.open().table("shop.sales").dtypes) == {"id": "bigint", "note": "string"}
    assert folder.rows() == [(1, ""), (2, "")]


@pytest.mark.parametrize(
    ("source", "text"),
    [({}, "text\na\n   \nb\n"), ({"delimiter": "\t"}, "a\tb\n1\t2\n\t\n")],
    ids=["one column", "tabs"],
)
def test_line_of_blanks_that_holds_values_is_not_dropped(
    make_csv: MakeCsv, source: dict[str, Any], text: str
) -> None:
    """Spark leaves out lines of blanks; where they are values, the file is refused."""
    folder = make_csv(**source)
    folder.write("landing/a.csv", text)
    error = refused(folder)
    assert "would be left out (1 line)" in error.reason
    folder.write("landing/a.csv", text.replace("   ", '"   "').replace("\n\t\n", '\n""\t\n'))
    folder.run()
    assert folder.rows() == ([("   ",), ("a",), ("b",)] if not source else [(1, 2), (None, None)])


def test_bytes_in_another_encoding_are_refused_then_read(make_csv: MakeCsv) -> None:
    """Latin bytes in a file that should be UTF-8 are named, not replaced; told the encoding, they load."""
    folder = make_csv()
    header = "id,text\n" + "1,filler\n" * 40_000  # beyond what is read of the header
    (folder.path / "landing/a.csv").write_bytes((header + "2,café €\n").encode("cp1252"))
    error = refused(folder)
    assert "it is not UTF-8 (1 line): 2,caf" in error.reason
    assert "encoding: windows-1252" in error.remedy
    folder.change(source={**folder.document["pipelines"]["sales"]["source"], "encoding": "cp1252"})
    folder.run()
    assert folder.rows()[-1] == (2, "café €")


def test_bytes_that_are_no_character_of_the_encoding(make_csv: MakeCsv) -> None:
    """Java writes U+FFFD for them; the row is bad."""
    folder = make_csv(encoding="windows-1252")
    (folder.path / "landing/a.csv").write_bytes(b"id,text\n" + b"1,filler\n" * 40_000 + b"2,\x81\n")
    error = refused(folder, BadRows)
    assert "bytes are not windows-1252" in error.reason


def test_wide_encodings_are_read_with_multi_line(make_csv: MakeCsv) -> None:
    """UTF-16 with and without its mark at the beginning."""
    folder = make_csv(encoding="UTF-16", multi_line=True)
    (folder.path / "landing/a.csv").write_bytes('id,text\r\n1,"é\r\n中"\r\n'.encode("utf-16"))
    folder.run()
    assert folder.rows() == [(1, "é\r\n中")]


@pytest.mark.parametrize(
    ("line", "found"), [("2,two,extra", 3), ("2", 1), ('2,"a,b",c,d', 4)], ids=["more", "fewer", "quoted"]
)
def test_row_with_another_number_of_values(make_csv: MakeCsv, line: str, found: int) -> None:
    """The message counts the values, and names what may be set otherwise."""
    folder = make_csv()
    folder.write("landing/a.csv", f"id,name\n1,one\n{line}\n")
    error = refused(folder, BadRows)
    assert f"a.csv: {found} values where 2 are expected" in error.reason
    assert line in error.reason
    assert "delimiter" in error.remedy
    assert "multi_line" in error.remedy


def test_header_with_another_delimiter(make_csv: MakeCsv) -> None:
    """A file with semicolons is no table of one column, unless that column is declared."""
    folder = make_csv()
    folder.write("landing/a.csv", "id;name\n1;one\n")
    error = refused(folder)
    assert 'one column, "id;name"' in error.reason
    assert 'delimiter: ";"' in error.remedy
    folder.change(columns={"id;name": "string"})
    folder.run()
    assert folder.rows() == [("1;one",)]


def test_utf16_read_as_utf8_says_so(make_csv: MakeCsv) -> None:
    """Every second byte is zero: the encoding is another one."""
    folder = make_csv()
    (folder.path / "landing/a.csv").write_bytes("id,name\n1,x\n".encode("utf-16-le"))
    assert "encoding: UTF-16" in refused(folder).remedy


def test_empty_files_have_no_rows(make_csv: MakeCsv) -> None:
    """Files of no bytes, packed or not, are loaded with the others and add nothing."""
    folder = make_csv()
    for name in ("a.csv", "b.csv.gz"):
        (folder.path / "landing" / name).write_bytes(b"")
    (folder.path / "landing/c.csv.gz").write_bytes(gzip.compress(b""))
    assert folder.run().rows.read == 0
    folder.write("landing/d.csv", "id\n1\n")
    assert folder.run().rows.inserted == 1
    assert folder.rows() == [(1,)]


def test_headers_that_differ_in_case_are_one_column(make_csv: MakeCsv) -> None:
    """Files of one batch may write a name in upper or lower case."""
    folder = make_csv()
    folder.write("landing/a.csv", "id,Name\n1,one\n")
    folder.write("landing/b.csv", "NAME,ID\ntwo,2\n")
    folder.run()
    assert folder.open().table("shop.sales").columns == ["id", "Name"]
    assert folder.rows() == [(1, "one"), (2, "two")]


def test_many_headers_in_one_batch(make_csv: MakeCsv) -> None:
    """Every file has a column of its own: its values land there."""
    columns = {"id": "bigint", **{f"c{index}": "string" for index in range(20)}}
    folder = make_csv(columns)
    for index in range(20):
        folder.write(f"landing/{index:03}.csv", f"c{index},id\nx{index},{index}\n")
    assert folder.run().rows.inserted == 20
    rows = folder.open().table("shop.sales").collect()
    filled = {row.id: [value for value in row if isinstance(value, str)] for row in rows}
    assert filled == {index: [f"x{index}"] for index in range(20)}


@pytest.mark.parametrize("name", ["_file", "_POS", "_row_id", "_partition", "_esker_bad"])
def test_name_that_belongs_to_iceberg_or_esker(make_csv: MakeCsv, name: str) -> None:
    """Such a table could be made, but not read."""
    folder = make_csv()
    folder.write("landing/a.csv", f"id,{name}\n1,x\n")
    error = refused(folder, ReservedName)
    assert name in error.message
    assert "Rename" in error.remedy


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("double", "1e400"),
        ("double", "-1e400"),
        ("double", "1e-400"),
        ("double", "9007199254740993"),
        ("double", "0.12345678901234567891"),
        ("float", "16777217"),
        ("float", "1e39"),
        ("float", "3.14159265"),
        ("decimal(4,2)", "1.23e-40"),
        ("decimal(38,10)", "1.00000000001"),
    ],
)
def test_number_that_would_be_rounded_is_bad(make_csv: MakeCsv, kind: str, value: str) -> None:
    """Infinity, zero and other digits are no values of what is written."""
    folder = make_csv({"v": kind})
    folder.write("landing/a.csv", f"id,v\n1,{value}\n")
    assert f'"{value}" is no {kind}' in refused(folder, BadRows).reason


def test_numbers_that_come_back_as_written_fit(make_csv: MakeCsv) -> None:
    """0.1 is no loss, nor are long numbers that a double gives back, nor infinity itself."""
    folder = make_csv({"f": "float", "d": "double", "e": "decimal(38,3)"})
    folder.write(
        "landing/a.csv",
        "f,d,e\n0.1,0.30000000000000004,12345678901234567890123456789012345.678\n"
        "16777216,1e308,1.5e3\n-0.0,-Infinity,-0.000\n3.40e38,123456789.012345,+7\n",
    )
    assert folder.run().rows.inserted == 4
    table = folder.open().table("shop.sales")
    assert table.where("f = float(0.1) and d = 0.30000000000000004D").count() == 1
    assert table.where("f = 16777216 and d = 1e308D and e = 1500").count() == 1
    assert table.where("d = double('-Infinity') and e = 0").count() == 1
    assert table.where("d = 123456789.012345D and e = 7").count() == 1
