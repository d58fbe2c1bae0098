"""Rows of other tables: what changed there is told, and versions never go down."""

from __future__ import annotations

from typing import Any

import pytest

from esker.errors import DeliveryRefused, ReindexNeeded, TargetUnavailable
from esker.events import Delivered, DeliveryStep, Event
from tests.deliver.told import Tell, Told
from tests.folder import Folder

pytestmark = pytest.mark.spark

ITEMS = {"items": {"table": "shop.items", "on": {"id": "work_id"}, "many": True, "columns": ["name"]}}


def enriched(tell: Tell, enrich: dict[str, Any] = ITEMS, items: dict[str, Any] | None = None) -> Told:
    """Return a consumer with rows of the table `shop.items` in its own."""
    told = tell(enrich=enrich, batch={"rows": 1})
    keys = {"mode": "upsert", "key": ["id"], **(items or {})}
    told.works.folder.document["pipelines"]["items"] = Folder.files_pipeline(
        "items/*.csv", table="shop.items", **keys
    )
    told.change()
    return told


def add(told: Told, *names: str) -> None:
    """Let work 1 have items of these names."""
    rows = [{"id": number, "work_id": 1, "name": name} for number, name in enumerate(names)]
    told.works.project.load("items", rows)


def names(told: Told) -> list[str]:
    return [item["name"] for item in told.shelf.documents()["1"]["items"]]


def test_versions_never_go_down(tell: Tell) -> None:
    """Without an enrichment, or with another table in its place, what is sent would count as old."""
    told = enriched(tell)
    for name in ("a", "b", "c"):
        add(told, name)
    told.load({"id": 1, "title": "a"})
    told.deliver()
    assert told.shelf.versions() == {"1": 4}
    told.change(enrich={})
    told.load({"id": 1, "title": "b"})
    with pytest.raises(ReindexNeeded) as caught:
        told.deliver()
    assert "items was taken out" in caught.value.reason
    told.change(enrich=ITEMS)
    told.works.sql("DROP TABLE lake.shop.items PURGE")
    told.works.sql("CREATE TABLE lake.shop.items (id bigint, work_id bigint, name string) USING iceberg")
    told.works.sql("INSERT INTO lake.shop.items VALUES (1, 1, 'made anew')")
    told.works.project = told.works.folder.open()
    with pytest.raises(ReindexNeeded) as caught:
        told.deliver()
    assert "made anew" in caught.value.reason
    told.reindex(into="second")
    assert (names(told), told.titles()) == (["made anew"], {"1": "b"})
    assert told.deliver().rows.rows == 0


def test_an_enrichment_that_comes_later_asks_for_a_reindex(tell: Tell) -> None:
    """All rows have to be told anew."""
    told = enriched(tell, {})
    add(told, "a")
    told.load({"id": 1, "title": "a"})
    told.deliver()
    told.change(enrich=ITEMS)
    with pytest.raises(ReindexNeeded) as caught:
        told.deliver()
    assert "items is new" in caught.value.reason
    told.reindex(into="second")
    add(told, "b")
    told.deliver()
    assert names(told) == ["b"]


def test_what_changes_while_all_is_told_is_told_once_more(tell: Tell) -> None:
    """A delivery that fails half way, from the beginning, forgets no change of another table."""
    told = enriched(tell)
    add(told, "a")
    told.load({"id": 1, "title": "a"})
    told.load({"id": 2, "title": "b"})
    down = told.shelf.path.with_name("down")
    with pytest.raises(TargetUnavailable):
        told.deliver(lambda _: down.touch() if told.shelf.sent() else None)
    assert names(told) == ["a"]
    down.unlink()
    add(told, "b")
    told.deliver()
    assert names(told) == ["b"]


@pytest.mark.parametrize("before", [["old"], []], ids=["rows", "empty"])
def test_other_tables_are_read_as_they_were_when_the_delivery_began(tell: Tell, before: list[str]) -> None:
    """What comes into them between two steps is told by the next delivery, with a higher version."""
    told = enriched(tell)
    told.load({"id": 1, "title": "a"})
    told.load({"id": 1, "title": "b"})
    told.works.sql("CREATE TABLE lake.shop.items (id bigint, work_id bigint, name string) USING iceberg")
    for name in before:
        told.works.sql(f"INSERT INTO lake.shop.items VALUES (7, 1, '{name}')")
    sent = 0

    def meanwhile(event: Event) -> None:
        nonlocal sent
        if isinstance(event, Delivered) and event.step is DeliveryStep.SENT:
            sent += 1
            if sent == 1:
                told.works.sql("INSERT INTO lake.shop.items (id, work_id, name) VALUES (8, 1, 'new')")

    told.deliver(meanwhile)
    assert (sent, told.titles(), names(told)) == (2, {"1": "b"}, before)
    [version] = told.shelf.versions().values()
    told.deliver()
    assert names(told) == sorted(["new", *before])
    assert told.shelf.versions() == {"1": version + 1}


@pytest.mark.parametrize("start", ["beginning", "now"])
def test_a_table_that_was_empty_is_told_when_rows_come(tell: Tell, start: str) -> None:
    """Its first rows are changes like others."""
    told = enriched(tell)
    told.change(start=start)
    told.load({"id": 1, "title": "a"})
    told.works.sql("CREATE TABLE lake.shop.items (id bigint, work_id bigint, name string) USING iceberg")
    told.deliver()
    told.works.sql("INSERT INTO lake.shop.items VALUES (1, 1, 'first')")
    told.works.project = told.works.folder.open()
    told.deliver()
    assert names(told) == ["first"]


def test_a_table_whose_change_log_is_off_is_compared(tell: Tell) -> None:
    """Its log lacks the changes since, and has no gap yet: it would tell that nothing changed."""
    told = enriched(tell)
    add(told, "a", "b")
    told.load({"id": 1, "title": "a"})
    told.deliver()
    told.works.folder.document["pipelines"]["items"]["changes"] = "off"
    told.change()
    add(told, "c", "b")
    told.deliver()
    assert names(told) == ["b", "c"]
    told.works.folder.document["pipelines"]["items"]["changes"] = "on"
    told.change()
    add(told, "c", "d")
    told.deliver()
    assert names(told) == ["c", "d"]


def test_another_table_of_format_version_1(tell: Tell) -> None:
    """Its snapshots have no numbers: what is sent after a change would have the version of before."""
    told = enriched(tell)
    told.load({"id": 1, "title": "a"})
    told.works.sql(
        "CREATE TABLE lake.shop.items (id bigint, work_id bigint, name string) USING iceberg "
        "TBLPROPERTIES ('format-version' = '1')"
    )
    told.works.sql("INSERT INTO lake.shop.items VALUES (1, 1, 'old')")
    told.deliver()
    told.load({"id": 1, "title": "b"})
    told.deliver()
    assert (names(told), told.titles()) == (["old"], {"1": "b"})
    told.works.sql("INSERT INTO lake.shop.items VALUES (2, 1, 'new')")
    told.works.project = told.works.folder.open()
    with pytest.raises(ReindexNeeded) as caught:
        told.deliver()
    assert "format version 1" in caught.value.reason


def test_an_empty_table_is_no_failure(tell: Tell) -> None:
    """Also where its enrichment changes, and when ids are asked for."""
    told = enriched(tell)
    told.works.folder.document["pipelines"]["works"] = Folder.files_pipeline(
        table="shop.works", mode="append", columns={"id": "int", "title": "string"}
    )
    told.change(id=["id"])
    add(told, "a")
    told.works.sql("CREATE TABLE lake.shop.works (id int, title string) USING iceberg")
    assert told.deliver().rows.rows == 0
    add(told, "b")
    assert told.deliver().rows.rows == 0
    assert told.reindex(ids=["1"]).rows.rows == 0


def test_versions_of_the_past_do_not_come_along(tell: Tell) -> None:
    """Of a table in mode scd2, only current rows."""
    told = enriched(tell, items={"mode": "scd2", "order_by": "year"})

    def load(name: str, year: int) -> None:
        told.works.project.load("items", [{"id": 1, "work_id": 1, "name": name, "year": year}])

    load("a", 2001)
    load("b", 2002)
    told.load({"id": 1, "title": "a"})
    told.deliver()
    assert names(told) == ["b"]
    load("c", 2003)
    told.deliver()
    assert names(told) == ["c"]


def test_maps_and_new_columns_of_another_table(tell: Tell) -> None:
    """A map cannot be put in order and is refused; changes are found beside it, and by a column that came."""
    told = enriched(tell)
    told.load({"id": 1, "title": "a"})
    told.works.sql(
        "CREATE TABLE lake.shop.items (work_id bigint, name string, more map<string, string>) USING iceberg"
    )
    told.works.sql("INSERT INTO lake.shop.items VALUES (1, 'a', map('k', 'v'))")
    told.works.project = told.works.folder.open()
    told.deliver()
    told.works.sql("ALTER TABLE lake.shop.items ADD COLUMN year int")
    told.works.sql("INSERT OVERWRITE lake.shop.items VALUES (1, 'a', map('k', 'v'), 1999)")
    told.works.project = told.works.folder.open()
    assert told.deliver().rows.sent == 1
    told.change(enrich={"items": {**ITEMS["items"], "columns": ["more"]}})
    told.load({"id": 1, "title": "b"})
    with pytest.raises(DeliveryRefused) as caught:
        told.deliver()
    assert "a map" in caught.value.reason
