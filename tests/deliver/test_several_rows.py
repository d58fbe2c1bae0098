"""Consumers of tables in which a key has several rows: documents are those that stand in the table."""

from __future__ import annotations

import random
from typing import Any

import pytest

from esker.deliver.delivery import open_feed
from esker.pipeline.deliver import subscribed
from tests.deliver.told import Tell, Told

pytestmark = pytest.mark.spark

both_ways = pytest.mark.parametrize(
    ("versions", "spark"), [(True, 0), (False, 10_000)], ids=["versions by spark", "order from here"]
)
"""An index that keeps versions, told by Spark's tasks; and a target that does not, told by this process."""


def book(work: int, isbn: str, title: str = "t") -> dict[str, Any]:
    """A row of a work: it has several books. `deleted` in its place is a work that has none any more."""
    return {"work": work, "isbn": isbn, "title": title, "deleted": False}


def gone(work: int) -> dict[str, Any]:
    return book(work, "") | {"deleted": True}


def books(tell: Tell, *, versions: bool, spark: int) -> Told:
    """Books, whose ids say nothing of the work that they belong to."""
    pipeline = {"mode": "delete_insert", "key": ["work"]}
    return tell(pipeline, id=["isbn"], versions=versions, batch={"spark": spark})


def found(told: Told) -> dict[str, tuple[int, str]]:
    return {id_: (body["work"], body["title"]) for id_, body in told.shelf.documents().items()}


def check(told: Told) -> None:
    """See that each id that stands in the table has a document, of a row that stands there, and no other."""
    rows: dict[str, set[tuple[int, str]]] = {}
    for row in told.works.read():
        rows.setdefault(row["isbn"], set()).add((row["work"], row["title"]))
    documents = found(told)
    assert documents.keys() == rows.keys()
    assert all(document in rows[id_] for id_, document in documents.items()), (documents, rows)


@both_ways
def test_a_row_that_still_stands_is_not_deleted(tell: Tell, versions: bool, spark: int) -> None:
    """A book that went over to another work, and one of two that are alike, stay in the target."""
    told = books(tell, versions=versions, spark=spark)
    told.load(book(1, "a"), book(1, "b"), book(1, "b"), book(1, "c", "old"), book(1, "c", "new"))
    told.deliver()
    assert found(told).keys() == {"a", "b", "c"}
    told.load(book(2, "a"))  # for a while it belongs to both
    told.deliver()
    assert found(told)["a"] == (2, "t")
    told.load(book(1, "b"), book(1, "c", "old"), book(1, "d"))
    result = told.deliver()
    assert result.rows.deleted == 0
    assert found(told) == {"a": (2, "t"), "b": (1, "t"), "c": (1, "old"), "d": (1, "t")}
    check(told)
    told.load(book(1, "b"), book(2, "c"))  # in one changeset: "a" and "d" go, "c" goes over
    assert told.deliver().rows.deleted == 2
    assert found(told) == {"b": (1, "t"), "c": (2, "t")}
    told.load(gone(2))
    told.deliver()
    assert found(told) == {"b": (1, "t")}
    check(told)


def test_what_stands_is_found_whenever_it_is_delivered(tell: Tell) -> None:
    """Several changesets at once, some ids, and a reindex: all lead to what the table has."""
    told, generator = books(tell, versions=True, spark=10_000), random.Random(20)
    for number in range(9):
        works = generator.sample(range(1, 4), generator.randrange(1, 3))
        batch = [
            book(work, generator.choice("abcde"), generator.choice("xy"))
            for work in works
            for _ in range(generator.randrange(1, 4))
        ]
        told.load(*batch, *([gone(4 - works[0])] if generator.random() < 0.2 else []))
        if number % 3 == 2:
            told.deliver()
            check(told)
    told.works.project.reindex("search", ids=list("abcde"))
    check(told)
    told.reindex()
    check(told)
    told.load(book(1, "a"), book(2, "a"), book(3, "a"))
    told.load(book(1, "b"), book(3, "b"))
    told.deliver()
    check(told)
    assert found(told)["a"] == (2, "t")


def test_the_table_is_asked_only_where_rows_go(tell: Tell) -> None:
    """A step of rows that came is read by this process: Spark is not needed for it."""
    told = books(tell, versions=True, spark=10_000)
    told.load(book(1, "a"), book(2, "b"))
    told.load(book(1, "c"))
    project = told.works.project
    feed = open_feed(project.engine, subscribed(project.project, "search"))
    came, went = feed.steps(feed.beginning(), 1)
    assert came.rows is not None
    assert went.rows is None


def version(number: int, at: int, title: str | None) -> dict[str, Any]:
    """A version of a row; without a title its end."""
    return {"id": number, "at": at, "title": title or "gone", "deleted": title is None}


@both_ways
def test_versions_of_the_past_are_no_news(tell: Tell, versions: bool, spark: int) -> None:
    """Of a table in mode scd2 the target has the current rows: what comes late changes nothing there."""
    told = tell({"mode": "scd2", "order_by": "at"}, versions=versions, batch={"spark": spark})
    told.load(version(1, 10, "a"), version(1, 30, "c"), version(2, 10, "x"), version(3, 10, "k"))
    told.deliver()
    assert told.titles() == {"1": "c", "2": "x", "3": "k"}
    told.load(version(1, 20, "b"), version(2, 20, None))  # late, and an end
    result = told.deliver()
    assert (result.rows.sent, result.rows.deleted) == (0, 1)
    assert told.titles() == {"1": "c", "3": "k"}
    told.load(version(2, 30, "y"), version(2, 40, None), version(3, 20, None), version(3, 30, "l"))
    told.load(version(1, 15, None), version(4, 10, "n"), version(4, 20, None))  # neither is there now
    told.deliver()
    assert told.titles() == {"1": "c", "3": "l"} == current(told)
    told.load(version(2, 50, "z"), version(1, 60, None))
    told.deliver()
    assert told.titles() == {"2": "z", "3": "l"} == current(told)
    told.reindex()
    assert told.titles() == current(told)
    told.works.project.reindex("search", ids=["1", "2", "3", "4"])
    assert told.titles() == current(told)


def test_random_versions(tell: Tell) -> None:
    """Versions and ends in any order: after every delivery the target has what is current."""
    told, generator = tell({"mode": "scd2", "order_by": "at"}), random.Random(8)
    for _ in range(12):
        told.load(
            *(
                version(
                    generator.randrange(4), generator.randrange(40), generator.choice(["a", "b", "c", None])
                )
                for _ in range(generator.randrange(1, 9))
            )
        )
        told.deliver()
        assert told.titles() == current(told)


def current(told: Told) -> dict[str, str]:
    return {str(row["id"]): row["title"] for row in told.works.read() if row["is_current"]}
