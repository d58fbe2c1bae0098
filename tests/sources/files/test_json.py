"""A JSON file is loaded as it is written, or refused with its name, the reason and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import IO

import pytest

from esker.errors import BadRows, FileChangedWhileReading, SourceMalformed
from esker.sources.files.json_document import write_lines
from tests.folder import Folder

pytestmark = pytest.mark.spark


@pytest.fixture
def folder(make_folder: Callable[..., Folder]) -> Folder:
    return make_folder(pipelines={"sales": Folder.files_pipeline("landing/*", "json")})


def test_lists_and_objects_are_rows(folder: Folder) -> None:
    """Nested values, digits, new fields in later files; a list of nothing holds no rows."""
    folder.write("landing/a.json", '[\n  {"id": 1, "x": {"y": [1, 2]}},\n  {"id": 2, "t": "a\\nb"}\n]\n')
    folder.write("landing/b.json", '{"id": 3,\n "price": 1.50}')
    folder.write("landing/c.json", "[]")
    folder.change(columns={"price": "decimal(9,2)"})
    peeked = folder.open().peek("sales")
    assert peeked.origins == ("a.json",)
    assert peeked.whole == "3 files"
    assert folder.run().rows.inserted == 3
    assert folder.rows("shop.sales", "id", "x.y", "t", "price") == [
        (1, [1, 2], None, None),
        (2, None, "a\nb", None),
        (3, None, None, Decimal("1.50")),
    ]
    folder.write("landing/d.json", '[{"id": 4, "later": true}]')
    assert folder.run().rows.inserted == 1
    assert folder.rows("shop.sales", "id", "later")[-1] == (4, True)
    assert folder.run().rows.read == 0


def test_only_the_broken_element_is_bad(folder: Folder) -> None:
    """An element that is no object is one bad row, named with the file that it came from."""
    folder.write("landing/a.json", '[{"id": 1}, 7, {"id": 2]]')
    folder.write("landing/b.json", '[{"id": 3}]')
    with pytest.raises(BadRows) as caught:
        folder.run()
    assert "is no JSON object" in caught.value.reason
    assert "a.json: " in caught.value.reason
    folder.change(bad_rows="quarantine")
    result = folder.run()
    assert (result.rows.inserted, result.rows.quarantined) == (2, 2)
    assert folder.rows("shop.sales", "id") == [(1,), (3,)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[{"id": 1}, {"id"', "it is not complete"),
        ('[{"id": 1}]\n[{"id": 2}]', "something follows its end"),
        ("[1, 2]", "no element of it is a JSON object"),
        ('{"id": 1, "id": 2}', "one name twice"),
        ("id\n1\n", "neither a list nor an object"),
    ],
)
def test_what_is_no_document_is_refused(folder: Folder, text: str, why: str) -> None:
    folder.write("landing/odd.json", text)
    with pytest.raises(SourceMalformed) as caught:
        folder.run()
    assert "landing/odd.json" in caught.value.message
    assert why in caught.value.reason
    assert not list(folder.path.glob(".esker/warehouse/shop/sales/data/**/*.parquet"))


def test_file_that_is_cut_while_it_is_copied(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The producer is at fault, not the file: whole files are loaded by the next run."""
    whole = json.dumps([{"id": number} for number in range(1000)])
    path = folder.write("landing/a.json", whole)

    def cut(document: IO[bytes], lines: IO[bytes]) -> None:
        path.write_text(whole[:500])
        write_lines(document, lines)

    monkeypatch.setattr("esker.sources.files.copies.write_lines", cut)
    with pytest.raises(FileChangedWhileReading, match=r"landing/a\.json"):
        folder.run()
    monkeypatch.undo()
    path.write_text(whole)
    assert folder.run().rows.inserted == 1000
