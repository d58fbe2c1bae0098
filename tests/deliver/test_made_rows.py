"""Messages that are made with SQL, and with rows of other tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from esker.errors import DeliveryRefused, InvalidProject, TransformNotFound
from tests.deliver.told import Tell, Told
from tests.folder import Folder

pytestmark = pytest.mark.spark


def bodies(told: Told) -> dict[str, Any]:
    return told.shelf.documents()


@pytest.mark.parametrize("spark", [10_000, 0])
def test_a_select_makes_messages(tell: Tell, spark: int) -> None:
    """Rows that it leaves out are not wanted; deletes need no transform."""
    told = tell(
        transform="SELECT id AS number, upper(title) AS title FROM input WHERE title <> 'hidden'",
        pipeline={"delete_when": "title = 'gone'"},
        batch={"spark": spark},
    )
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "b"}, {"id": 3, "title": "c"})
    told.deliver()
    assert bodies(told) == {
        str(number): {"number": number, "title": title} for number, title in ((1, "A"), (2, "B"), (3, "C"))
    }
    told.load({"id": 1, "title": "gone"}, {"id": 2, "title": "hidden"}, {"id": 3, "title": "d"})
    result = told.deliver()
    assert (result.rows.sent, result.rows.deleted, result.rows.unwanted) == (1, 2, 1)
    assert bodies(told) == {"3": {"number": 3, "title": "D"}}
    told.reindex(into="second")
    assert bodies(told) == {"3": {"number": 3, "title": "D"}}


def test_a_select_may_stand_in_a_file(tell: Tell) -> None:
    """It is read with the project file; a file that is not there is told with its place."""
    told = tell()
    told.works.folder.write("sql/works.sql", "-- what the index holds\nSELECT id, title AS name FROM input\n")
    told.change(transform="sql/works.sql")
    told.load({"id": 1, "title": "a"})
    told.deliver()
    assert bodies(told) == {"1": {"id": 1, "name": "a"}}
    with pytest.raises(InvalidProject, match=r"consumers\.search\.transform") as caught:
        told.change(transform="sql/nothing.sql")
    assert 'there is no file "sql/nothing.sql"' in str(caught.value)


@pytest.mark.parametrize("spark", [10_000, 0])
def test_a_row_that_a_select_fails_on_is_a_dead_letter(tell: Tell, spark: int) -> None:
    """It is told which column, and of what row; all others arrive."""
    told = tell(
        transform="SELECT id, CAST(title AS INT) + 1 AS year, year * 2 AS twice FROM input "
        "WHERE CAST(title AS INT) <> 7",
        batch={"spark": spark},
    )
    told.load(*({"id": number, "title": str(number)} for number in range(1, 10)), {"id": 10, "title": "n.d."})
    result = told.deliver()
    assert (result.rows.sent, result.rows.unwanted, result.rows.dead) == (8, 1, 1)
    assert bodies(told) == {
        str(number): {"id": number, "year": number + 1, "twice": 2 * number + 2}
        for number in range(1, 10)
        if number != 7
    }
    letter = told.works.sql("SELECT stage, error, payload FROM lake.shop.search__dead")[0]
    assert letter["stage"] == "transform"
    assert "WHERE" in letter["error"]
    assert json.loads(letter["payload"]) == {"id": 10, "title": "n.d."}

    told.change(transform="SELECT id, CAST(title AS INT) AS year FROM input")
    again = told.deliver(retry_dead=True)
    assert (again.rows.known, again.rows.dead) == (0, 1)
    letters = told.works.sql("SELECT error FROM lake.shop.search__dead ORDER BY seen_at DESC")
    assert letters[0]["error"] == "year: CAST(input.title AS INT) cannot be computed"
    told.load({"id": 10, "title": "1984"})
    told.deliver()
    assert bodies(told)["10"] == {"id": 10, "year": 1984}


def test_a_select_that_makes_several_rows_of_one_is_refused(tell: Tell) -> None:
    """They would all have one id."""
    told = tell(transform="SELECT id, explode(array(1, 2)) AS n FROM input")
    told.load({"id": 1, "title": "a"})
    with pytest.raises(DeliveryRefused) as caught:
        told.deliver()
    assert "Generate" in caught.value.reason


def test_a_select_that_does_not_fit_is_told(tell: Tell) -> None:
    """Before anything is sent."""
    told = tell(transform="SELECT id, nothing FROM input")
    told.load({"id": 1, "title": "a"})
    with pytest.raises(DeliveryRefused, match="search") as caught:
        told.deliver()
    assert "nothing" in caught.value.reason
    told.change(transform="SELECT count(*) AS n FROM input GROUP BY id")
    with pytest.raises(DeliveryRefused):
        told.deliver()


@pytest.mark.parametrize("spark", [10_000, 0])
def test_rows_of_other_tables_come_along(tell: Tell, spark: int) -> None:
    """As a list or as one, at one snapshot; the version grows with the other table, too."""
    told = tell(
        enrich={
            "items": {"table": "shop.items", "on": {"id": "work_id"}, "many": True, "columns": ["name"]},
            "first": {"table": "shop.items", "on": {"id": "id"}},
        },
        batch={"spark": spark},
    )
    items = Folder.files_pipeline("items/*.csv", table="shop.items", mode="upsert", key=["id"])
    told.works.folder.document["pipelines"]["items"] = items
    told.works.folder.save()
    told.works.project = told.works.folder.open()
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "b"})
    with pytest.raises(DeliveryRefused, match="search"):
        told.deliver()
    told.works.project.load(
        "items", [{"id": n, "work_id": w, "name": f"item {n}"} for n, w in ((1, 1), (5, 1), (6, 9))]
    )
    told.deliver()
    assert bodies(told) == {
        "1": {
            "id": 1,
            "title": "a",
            "items": [{"name": "item 1"}, {"name": "item 5"}],
            "first": {"id": 1, "work_id": 1, "name": "item 1"},
        },
        "2": {"id": 2, "title": "b", "items": [], "first": None},
    }
    # Changeset 1, and twice the sequence number 1 of the other table.
    assert told.shelf.versions() == {"1": 3, "2": 3}
    assert told.deliver().rows.rows == 0
    # An item moves to the other work: both are told, and nothing else.
    told.works.project.load("items", [{"id": 5, "work_id": 2, "name": "item 5"}])
    result = told.deliver()
    assert (result.changesets, result.rows.sent) == (0, 2)
    assert [len(bodies(told)[id_]["items"]) for id_ in ("1", "2")] == [1, 1]
    assert told.shelf.versions() == {"1": 5, "2": 5}
    # Also where somebody else did it, and the state database is lost.
    told.works.sql("UPDATE lake.shop.items SET name = 'other' WHERE id = 1")
    told.works.folder.lose_state()
    told.works.project = told.works.folder.open()
    assert told.deliver().rows.sent == 1
    assert bodies(told)["1"]["items"] == [{"name": "other"}]
    told.load({"id": 1, "title": "z"})
    told.deliver()
    assert (bodies(told)["1"]["title"], told.deliver().rows.rows) == ("z", 0)


def test_slips_are_told(tell: Tell) -> None:
    """A function that is not there, and keys that do not fit the pipeline, with where they stand."""
    told = tell(transform="transforms/works.py:nobody")
    told.load({"id": 1, "title": "a"})
    with pytest.raises(TransformNotFound, match="nobody"):
        told.deliver()
    told.works.folder.write("transforms/works.py", "def nobody(row): return row\n")
    with pytest.raises(TransformNotFound) as caught:
        told.deliver()
    assert "@esker.transform" in caught.value.reason
    for keys, words in (
        ({"from": "wroks"}, 'did you mean "works"?'),
        ({"transform": "something"}, "SELECT"),
        (
            {"transform": None, "to": {"type": "elasticsearch", "connection": "x", "index": "y"}},
            "no connection",
        ),
    ):
        with pytest.raises(InvalidProject, match=r"consumers\.search") as wrong:
            told.change(**keys)
        assert words in str(wrong.value)
        told.works.folder.document["consumers"]["search"] = {
            "from": "works",
            "to": {"type": "files", "path": "x"},
        }
    told.works.folder.document["pipelines"]["works"] = Folder.files_pipeline(
        table="shop.works", mode="append"
    )
    with pytest.raises(InvalidProject, match="id:"):
        told.change()
