"""An XML file is loaded as it is written, or refused with its name, the reason and what to do."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from esker.engine.pins import is_spark
from esker.errors import NotInThisSpark, SourceMalformed, TypeConflict
from esker.ledger.file_versions import FileVersion
from esker.sources.files.found import FoundFile
from esker.sources.files.xml_check import check_document
from tests.folder import Folder

BOOKS = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!-- <book id="9"/> -->
<catalogue>
  <book id="1"><title>Müller &amp; Söhne</title><price>1.50</price><code>007</code>
    <author role="editor">Ada</author><tag>a</tag></book>
  <book id="2"><title/><price>2</price><code>12</code><tag>b</tag><tag>c</tag></book>
</catalogue>
"""


@pytest.fixture
def folder(make_folder: Callable[..., Folder]) -> Folder:
    return make_folder(
        pipelines={"sales": Folder.files_pipeline("landing/*", "xml", source={"row_tag": "book"})}
    )


def is_refused_by_spark(folder: Folder) -> bool:
    """Spark 3.5 has no reader for XML: it is told, and nothing is loaded. Then there is no more to see."""
    if not is_spark("3.5"):
        return False
    with pytest.raises(NotInThisSpark):
        folder.run()
    return True


def put(folder: Folder, name: str, text: str) -> None:
    path = folder.path / "landing" / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode("latin-1"))


@pytest.mark.spark
def test_elements_are_rows(folder: Folder) -> None:
    """Attributes, lists, structs, encodings; later files with one element of a list, and with new ones."""
    put(folder, "a.xml", BOOKS)
    if is_refused_by_spark(folder):
        return
    folder.change(columns={"price": "decimal(9,2)"})
    peeked = folder.open().peek("sales")
    assert peeked.columns == ("_id", "author", "code", "price", "tag", "title")
    assert folder.run().rows.inserted == 2
    rows = folder.open().table("shop.sales").orderBy("_id").collect()
    first = rows[0]
    assert (first["_id"], first.title, first.price, first.code) == (
        1,
        "Müller & Söhne",
        Decimal("1.50"),
        "007",
    )
    assert (tuple(first.author), first.tag) == (("Ada", "editor"), ["a"])
    assert (rows[1].title, rows[1].author, rows[1].tag) == ("", None, ["b", "c"])

    # One tag in all of a batch is a list still, and a text an element that could have attributes.
    put(folder, "b.xml.gz", '<x><book id="3"><tag>d</tag><author>Bo</author><new>n</new></book></x>')
    assert folder.run().rows.inserted == 1
    [last] = folder.open().table("shop.sales").where("_id = 3").collect()
    assert (last.tag, tuple(last.author), last.new) == (["d"], ("Bo", None), "n")
    assert folder.run().rows.read == 0

    put(folder, "c.xml", '<x><book id="4"><title>one</title><title>two</title></book></x>')
    with pytest.raises(TypeConflict) as caught:
        folder.run()
    assert "title" in caught.value.reason


@pytest.mark.spark
def test_bad_value_is_one_bad_row(folder: Folder) -> None:
    put(folder, "a.xml", '<x><book id="1"><price>2</price></book><book id="2"><price>dear</price></book></x>')
    if is_refused_by_spark(folder):
        return
    folder.change(columns={"price": "decimal(9,2)"}, bad_rows="quarantine")
    result = folder.run()
    assert (result.rows.inserted, result.rows.quarantined) == (1, 1)


def check(folder: Path, text: str) -> None:
    path = folder / "a.xml"
    path.write_text(text, encoding="utf-8")
    check_document(FoundFile(FileVersion("landing/a.xml", len(text), 0), path), "book")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('<x><book id="1"/>', "line 1, column 18: no element found"),
        ("<x><book><a>1</b></book></x>", "line 1, column 16: mismatched tag"),
        ("<x/><x/>", "junk after document element"),
        ("book\n1\n", "syntax error"),
        ("<x><Book/></x>", 'no element "book", but "Book"'),
        ("<x xmlns:m='u'><m:book/></x>", 'no element "book", but "m:book"'),
        ('<!DOCTYPE x [<!ENTITY e "v">]><x><book>&e;</book></x>', 'an entity "e"'),
    ],
)
def test_what_is_no_whole_document_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(SourceMalformed) as caught:
        check(tmp_path, text)
    assert "landing/a.xml" in caught.value.message
    assert why in caught.value.reason


def test_document_without_rows_is_one(tmp_path: Path) -> None:
    check(tmp_path, "<x><header/></x>")
    check(tmp_path, "<x><book/><m:book xmlns:m='u'/></x>")
