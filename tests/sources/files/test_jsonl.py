"""A file of JSON lines is loaded as it is written, or refused with its name, the reason and what to do."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from esker.engine.pins import is_spark
from esker.errors import BadRows, ColumnRefused, EskerError, ReservedName, SourceMalformed
from tests.folder import Folder

pytestmark = pytest.mark.spark

IS_35 = is_spark("3.5")
"""Its reader makes doubles of numbers before they become texts."""


@pytest.fixture
def folder(make_folder: Callable[..., Folder]) -> Folder:
    return make_folder(pipelines={"sales": Folder.files_pipeline("landing/*", "jsonl")})


def refused(folder: Folder, kind: type[EskerError] = SourceMalformed) -> EskerError:
    """Run, and return the error; nothing may have been loaded."""
    with pytest.raises(kind) as caught:
        folder.run()
    assert not list(folder.path.glob(".esker/warehouse/shop/sales/data/**/*.parquet"))
    return caught.value


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"id": 1} {"id": 2}', "something follows the object"),
        ('{"id": 3} garbage', "something follows the object"),
        ('{"id": 4}}', "something follows the object"),
        ("{} x", "something follows the object"),
        ('[{"id": 5}] x', "something follows the object"),
        ('{"id": 6}] [{"id": 7}', "something follows the object"),
        ('{"id": 1, "id": 2}', "one name twice"),
        ('{"id": 1, "a": {"b": 1, "b": 2}}', "one name twice"),
        (r'{"id": 1, "a": "\ud800"}', "half a surrogate pair"),
        (r'{"id": 1, "a": "x\\\udc00"}', "half a surrogate pair"),
    ],
)
def test_line_that_says_more_than_spark_reads_is_refused(folder: Folder, line: str, why: str) -> None:
    """Spark reads one object of a line and the last of two names, and writes ? for half a character."""
    folder.write("landing/good.jsonl", '{"id": 0}\n')
    folder.write("landing/odd.jsonl", f'{{"id": 9}}\n{line}\n')
    error = refused(folder)
    assert "landing/odd.jsonl" in error.message
    assert f"{why}" in error.reason
    assert "(1 line)" in error.reason
    assert line in error.reason
    assert error.remedy.startswith("Write ")


def test_lines_that_only_look_odd_are_loaded(folder: Folder) -> None:
    """Blank lines, Windows' line ends, lists of objects, NaN, pairs, escaped escapes, a mark at the start."""
    folder.write(
        "landing/a.jsonl",
        '\ufeff{"id": 1}\r\n\n   \n[{"id": 2}, {"id": 3}]\n{"id": 4, "x": NaN}\n'
        + r'{"id": 5, "t": "\ud83d\ude00"}'
        + "\n"
        + r'{"id": 6, "t": "\\ud800"}'
        + "\n",
    )
    if IS_35:
        assert 'NaN"" is no double' in refused(folder, BadRows).reason
        return
    folder.run()
    table = folder.open().table("shop.sales")
    assert sorted(row.id for row in table.collect()) == [1, 2, 3, 4, 5, 6]
    assert table.where("id = 5").first().t == "\U0001f600"  # type: ignore[union-attr]
    assert table.where("id = 6").first().t == "\\ud800"  # type: ignore[union-attr]
    assert table.where("isnan(x)").count() == 1


@pytest.mark.parametrize(
    "lines", ['{"id": 1}\n{"ID": 2}\n', '{"id": 1, "a": {"x": 1}}\n{"id": 2, "a": {"X": 1}}\n']
)
def test_names_that_differ_in_case_are_not_read_as_null(folder: Folder, lines: str) -> None:
    """Spark takes both for one column and finds the values of one only."""
    folder.write("landing/good.jsonl", '{"id": 0}\n')
    folder.write("landing/odd.jsonl", lines)
    error = refused(folder, ColumnRefused)
    assert "landing/odd.jsonl" in error.message
    assert (
        '"id" and "ID"' in error.reason
        or '"a.X" and "a.x"' in error.reason
        or '"ID" and "id"' in error.reason
    )


def test_bytes_that_are_not_utf8(folder: Folder) -> None:
    """They are named, not replaced."""
    (folder.path / "landing/a.jsonl").write_bytes('{"id": 1}\n{"id": "café"}\n'.encode("latin-1"))
    error = refused(folder)
    assert "it is not UTF-8 (1 line)" in error.reason
    assert "Convert" in error.remedy


def test_object_over_many_lines(folder: Folder) -> None:
    """A file that is written for people is refused with a word on the form; so is its row, later."""
    folder.write("landing/a.jsonl", '{\n  "id": 1,\n  "tags": [\n    "a"\n  ]\n}\n')
    error = refused(folder)
    assert "no line of it is a JSON object: {" in error.reason
    assert "one whole object a line" in error.remedy
    folder.change(columns={"id": "bigint"})
    folder.write("landing/a.jsonl", '{"id": 1}\n{\n')
    assert "is no JSON object on one line" in refused(folder, BadRows).reason


def test_empty_packed_file(folder: Folder) -> None:
    """A file of no bytes has no rows."""
    (folder.path / "landing/a.jsonl.gz").write_bytes(b"")
    assert folder.run().rows.read == 0
    folder.write("landing/b.jsonl", '{"id": 1}\n')
    folder.run()
    assert folder.rows() == [(1,)]


@pytest.mark.parametrize("name", ["_file", "_esker_malformed", "_esker_origin"])
def test_name_that_belongs_to_iceberg_or_esker(folder: Folder, name: str) -> None:
    """Such a column is refused, never lost."""
    folder.write("landing/a.jsonl", f'{{"id": 1, "{name}": "x"}}\n')
    assert name in refused(folder, ReservedName).message


def test_column_called_like_sparks_own(folder: Folder) -> None:
    """`_metadata` is a name like any other."""
    folder.write("landing/a.jsonl", '{"_metadata": "x"}\n')
    folder.run()
    assert folder.rows() == [("x",)]


# --- numbers -------------------------------------------------------------------------------------


def test_number_in_a_text_column_keeps_its_digits(folder: Folder) -> None:
    """Beside texts a number is text, as it is written; so is what stands inside objects."""
    folder.write(
        "landing/a.jsonl",
        '{"id": 1, "v": 1.50, "o": {"v": 1e2}}\n{"id": 2, "v": "x", "o": {"v": "y"}}\n'
        '{"id": 3, "v": 123456789012345678901234567890123456789012345, "o": {"v": [1, 2.50]}}\n',
    )
    folder.run()
    rows = sorted(folder.open().table("shop.sales").collect())
    assert [(row.id, row.v, row.o.v) for row in rows] == [
        (1, *(("1.5", "100.0") if IS_35 else ("1.50", "1e2"))),
        (2, "x", "y"),
        (3, "123456789012345678901234567890123456789012345", "[1,2.5]" if IS_35 else "[1, 2.50]"),
    ]


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ('{"v": 9007199254740993}\n{"v": 0.5}\n', "9007199254740993"),
        ('{"v": 123456789012345678901234567890123456789012345}\n', "1234567890123456789012345678901"),
        ('{"v": 1e400}\n', "1e400"),
    ],
)
def test_inferred_double_is_never_rounded(folder: Folder, lines: str, value: str) -> None:
    """Where no type has room for all values of a column, the row is bad until a type is declared."""
    folder.write("landing/a.jsonl", lines)
    if IS_35 and value == "1e400":
        assert "more digits than Spark 3.5 reads" in refused(folder).reason
        return
    error = refused(folder, BadRows)
    assert f'column "v": "{value}' in error.reason
    assert "is no double" in error.reason
    folder.change(columns={"v": "string"}, table="shop.texts")
    folder.run()
    assert any(text.startswith(value) for (text,) in folder.rows("shop.texts"))


def test_long_decimals_keep_their_digits_at_every_depth(folder: Folder) -> None:
    """38 digits, also in objects and lists."""
    kind = "decimal(38,10)"
    folder.change(columns={"d": kind, "o": f"struct<d: {kind}>", "l": f"array<{kind}>"})
    number = "1234567890123456789012345678.0123456789"
    line = f'{{"d": {number}, "o": {{"d": {number}}}, "l": [{number}, null]}}'
    folder.write("landing/a.jsonl", line + "\n")
    if IS_35:
        assert "more digits than Spark 3.5 reads" in refused(folder).reason
        folder.write("landing/a.jsonl", line.replace(number, f'"{number}"') + "\n")
    folder.run()
    row = folder.open().table("shop.sales").first()
    assert row is not None
    assert (row.d, row.o.d, row.l) == (Decimal(number), Decimal(number), [Decimal(number), None])


@pytest.mark.parametrize(
    ("kind", "line", "path"),
    [
        ("struct<d: decimal(4,2)>", '{"v": {"d": 1.234}}', "v.d"),
        ("array<double>", '{"v": [1, 1e400]}', "v"),
        ("array<struct<n: int>>", '{"v": [{"n": 1}, {"n": 1.5}]}', "v.n"),
        ("array<array<date>>", '{"v": [["2026-01-02"], ["soon"]]}', "v"),
        ("struct<at: timestamp>", '{"v": {"at": 1700000000}}', "v.at"),
    ],
)
def test_value_inside_that_does_not_fit_is_bad(folder: Folder, kind: str, line: str, path: str) -> None:
    """Values inside objects and lists are checked like those of columns."""
    folder.change(columns={"v": kind})
    folder.write("landing/a.jsonl", line + "\n")
    if IS_35 and "1e400" in line:
        assert "more digits than Spark 3.5 reads" in refused(folder).reason
        return
    assert f'column "{path}": "' in refused(folder, BadRows).reason
