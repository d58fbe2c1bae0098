"""The quotes of a file whose values hold line breaks are followed to its end."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from esker.errors import SourceMalformed
from esker.ledger.file_versions import FileVersion
from esker.project.sources import FilesSource
from esker.sources.files import csv_quotes
from esker.sources.files.csv_quotes import check_quotes
from esker.sources.files.found import FoundFile


def check(folder: Path, data: bytes, line_end: str = "\n", name: str = "a.csv", **keys: Any) -> None:
    location = folder / name
    location.write_bytes(data)
    source = FilesSource(path="*.csv", format="csv", multi_line=True, **keys)
    check_quotes(FoundFile(FileVersion(name, len(data), 0), location), source, line_end)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a,b\n",
        'a,b\n1,"x\ny"',
        'a,b\n1,"x ""y"" z"\n2,""\n3,5" pipe\n',
        'a,b\n1,"x" \n',
        'a,b\n1,"\r\n,\r"\n',
        '"a\nb",c\n1,2\n\n\n',
    ],
)
@pytest.mark.parametrize("chunk", [1, 2, 7, 1 << 20])
def test_well_formed_files_pass_however_they_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, chunk: int
) -> None:
    """It does not matter where one piece of the file ends and the next begins."""
    monkeypatch.setattr(csv_quotes, "_CHUNK", chunk)
    check(tmp_path, text.encode())
    check(tmp_path, gzip.compress(text.encode()), name="a.csv.gz")
    check(tmp_path, text.encode("utf-16"), encoding="UTF-16")


@pytest.mark.parametrize("chunk", [1, 5, 1 << 20])
def test_windows_line_ends_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """Also where a piece ends between \\r and \\n."""
    monkeypatch.setattr(csv_quotes, "_CHUNK", chunk)
    check(tmp_path, b'a,b\r\n1,"x\r\ny"\r\n2,z\r\n', "\r\n")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'a,b\n1,x\n2,"open\n3,y\n', 'line 3: a quote is not closed: "open'),
        (b'a,b\n1,"x"y\n2,z\n', 'line 2: text follows a closing quote: "x"y'),
        (b'a,b\n1,x\n2,"open\n3,"y"\n', 'line 3: text follows a closing quote: "open'),
        (b"a,b\n1,x\r\n2,y\n", "line 2: it ends otherwise than the first line: x"),
        (b'a,b\n1,5",x\n3,"open\n', 'line 3: a quote is not closed: "open'),
        (b"a,b\n1,caf\xe9\n", "it is not UTF-8"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 3, 1 << 20])
def test_what_is_wrong_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, why: str, chunk: int
) -> None:
    """The line is where the value begins."""
    monkeypatch.setattr(csv_quotes, "_CHUNK", chunk)
    with pytest.raises(SourceMalformed) as caught:
        check(tmp_path, data)
    assert caught.value.reason.startswith(why)
    assert caught.value.remedy


def test_other_delimiters_and_quotes(tmp_path: Path) -> None:
    """Characters that mean something in patterns are characters."""
    check(tmp_path, b"a|b\n'x|''y'|2\n", delimiter="|", quote="'")
    check(tmp_path, b"a^b\n]x^]^2]\n3^4\n", delimiter="^", quote="]")
    with pytest.raises(SourceMalformed, match="malformed"):
        check(tmp_path, b"a|b\n'x|2\n", delimiter="|", quote="'")


def test_null_in_quotes_is_named(tmp_path: Path) -> None:
    """It cannot be told from null."""
    check(tmp_path, b"a,b\nNA,BANANA\n", null_value="NA")
    with pytest.raises(SourceMalformed) as caught:
        check(tmp_path, b'a,b\n1,2\n"NA",x\n', null_value="NA")
    assert caught.value.reason.startswith("line 3: ")
