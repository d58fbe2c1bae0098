"""Small CSV files are read without a job where that cannot be told from reading them with one."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from esker.ledger.file_versions import FileVersion
from esker.project.sources import FilesSource
from esker.sources.files.csv import CsvFormat
from esker.sources.files.csv_header import Header
from esker.sources.files.csv_lines import flaw_of
from esker.sources.files.csv_small import read_values
from esker.sources.files.found import FoundFile
from esker.sources.files.lines import read_lines
from esker.sources.source import MALFORMED, ORIGIN
from tests.folder import Folder

PIECES = (
    *('"', '""', '"a"', '"a,b"', '"x""y"', "a", "b ", " c", '5"', ",", ",", ",", "\n", "\n", "\n", "\r\n"),
    *(
        "\r",
        "\t",
        " ",
        ";",
        "NULL",
        '"NULL"',
        "\\",
        "'",
        "#",
        "\u2028",
        "\x85",
        "\x0b",
        "\x1e",
        "é",
        "\u3000",
    ),
    *("\0", "\ufeff", "😀", "1", "x,y", "p,q\n", "1,2\n", "\n\n", '"",""\n', ",\n", '""', "-"),
)


def csv(**keys: Any) -> FilesSource:
    return FilesSource.model_validate({"path": "landing/*", "format": "csv", **keys})


def found(path: Path, content: bytes) -> FoundFile:
    path.write_bytes(content)
    return FoundFile(FileVersion(path.name, len(content), 1), path)


def values(path: Path, content: bytes, **keys: Any) -> Any:
    """Return what is read of a file of two columns without Spark."""
    return read_values({found(path, content): Header(("a", "b"))}, csv(**keys))


def test_what_is_beyond_doubt_is_read(tmp_path: Path) -> None:
    """Quotes around whole values, either end of line, a mark at the beginning, empty lines, packed files."""
    content = b'\xef\xbb\xbfa,b\r\n1,"x, ""y"""\n\n,""\r"",z'
    expected = {"a": ["1", ""], "b": ['x, "y"', "", "z"]}
    assert values(tmp_path / "a.csv", content) == expected
    assert values(tmp_path / "a.csv.gz", gzip.compress(content)) == expected
    assert values(tmp_path / "b.csv", b"a;b\nNULL;\n", delimiter=";", null_value="NULL") == {
        "a": [],
        "b": [""],
    }
    assert values(tmp_path / "c.csv", b"1,2\n3,4\n", header=False) == {"a": ["1", "3"], "b": ["2", "4"]}
    assert values(tmp_path / "d.csv", b'a,b\n1,5" x\n', quote="") == {"a": ["1"], "b": ['5" x']}


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        (b"a,b\n1\n", {}),
        (b"a,b\n1,2,3\n", {}),
        (b'a,b\n1,"x\n', {}),
        (b'a,b\n1,2,"x"y\n', {}),
        (b'a,b\n1,"x" \n', {}),
        (b'a,b\n1,5"\n', {}),
        (b'"a,b\n1,2\n', {"header": False}),
        (b"a,b\n1,\xff\n", {}),
        (b"a,b\n1,\0\n", {}),
        ("a,b\n1,x\u2028\n".encode(), {}),
        (b"a,b\n  \n1,2\n", {}),
        (b"a\tb\n\t\n", {"delimiter": "\t"}),
        (b"a,b\n1,\xe9\n", {"encoding": "ISO-8859-1"}),
        (b"a,b\n1,2\n", {"multi_line": True}),
        (b"a,b\n1,2\n", {"options": {"comment": "#"}}),
        (b'a,b\n1,"NULL"\n', {"null_value": "NULL"}),
    ],
    ids=str,
)
def test_whatever_is_in_doubt_is_left_to_spark(content: bytes, keys: dict[str, Any], tmp_path: Path) -> None:
    assert values(tmp_path / "a.csv", content, **keys) is None


def test_a_large_file_is_left_to_spark(tmp_path: Path) -> None:
    assert values(tmp_path / "a.csv", b"a,b\n" + b"1,2\n" * 300_000) is None


def test_a_packed_file_is_not_unpacked_without_end(tmp_path: Path) -> None:
    """A few kilobytes may hold gigabytes."""
    assert values(tmp_path / "a.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000)) is None


def test_several_files_are_small_together_or_not(tmp_path: Path) -> None:
    """Columns go by name, whatever their case and place; all files together have the room of one."""
    one = found(tmp_path / "one.csv", b"id,name\n1,x\n")
    other = found(tmp_path / "other.csv", b"NAME,more\ny,z\n")
    headers = {one: Header(("id", "name")), other: Header(("NAME", "more"))}
    assert read_values(headers, csv()) == {"id": ["1"], "name": ["x", "y"], "more": ["z"]}
    large = b"id,name\n" + b"1,x\n" * 150_000
    many = {found(tmp_path / f"{n}.csv", large): Header(("id", "name")) for n in range(2)}
    assert read_values(dict([*many.items()][:1]), csv()) is not None
    assert read_values(many, csv()) is None


@pytest.mark.spark
@pytest.mark.parametrize(
    "keys",
    [
        *({}, {"delimiter": ";"}, {"delimiter": "\t"}, {"delimiter": " "}, {"quote": ""}, {"quote": "'"}),
        *({"null_value": "NULL"}, {"header": False}, {"delimiter": "|", "quote": ""}),
    ],
    ids=str,
)
def test_spark_reads_the_same(keys: dict[str, Any], folder: Folder, tmp_path: Path) -> None:
    """Random files of all that is odd: what is read here has no flaw, and the same values."""
    spark, source, seed = folder.open().engine.spark, csv(**keys), 21
    chance = random.Random(seed)
    places = {",": source.delimiter, '"': source.quote or '"'}
    header = Header(("a", "b"))
    headers = {}
    for number in range(400):
        pieces = [chance.choice(PIECES) for _ in range(chance.randrange(12))]
        if chance.random() < 0.7:
            pieces = [p for p in pieces if p not in ("\0", "\u2028", "\x85", '5"')] + ["1,2\n"]
        text = "".join(places.get(letter, letter) for letter in "".join(pieces))
        first = f"a{source.delimiter}b\n" if source.header else ""
        headers[found(tmp_path / f"{number:03}.csv", f"{first}{text}".encode())] = header
    files = [file for file in headers if file.size]
    lines = read_lines(spark, files).withColumn("path", F.col("_metadata.file_path"))
    flaw = flaw_of(F.col("value"), source, blanks_count=source.delimiter.isspace())
    flawed = {row.path.rpartition("/")[2] for row in lines.where(flaw.isNotNull()).select("path").collect()}
    read = CsvFormat(spark, source, ("a", "b"), dict(headers)).read(files, ())
    by_spark: dict[str, list[Any]] = {}
    for row in read.select("a", "b", MALFORMED, ORIGIN).collect():
        by_spark.setdefault(row[ORIGIN].rpartition("/")[2], []).append(row)
    here = 0
    for file in files:
        found_here = read_values({file: header}, source)
        if found_here is None:
            continue
        here += 1
        told = (seed, file.location.read_bytes())
        assert file.path not in flawed, told
        rows = by_spark.get(file.path, [])
        assert all(row[MALFORMED] is None for row in rows), told
        expected = {name: [row[name] for row in rows if row[name] is not None] for name in ("a", "b")}
        assert found_here == expected, told
    assert here > 40, "many are read here"
