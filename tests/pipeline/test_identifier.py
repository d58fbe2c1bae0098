"""Which columns a table calls its identifier, as key and mode change: decisions, without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from esker.engine.iceberg.columns import schema_json
from esker.engine.iceberg.table import TABLE_DEFAULTS, Table, TableId
from esker.pipeline.alterations import alterations, creation, without_key
from esker.pipeline.table_changes import CreateTable, IdentifyBy, Resort, TableChange
from esker.project.layout import SortField
from esker.project.pipelines import Pipeline
from esker.project.types import Column, Plain
from esker.sources import Sent

SALES = TableId("lake", "shop.sales")
NAMES = ("a", "b", "c")
OURS = {"esker.identifier.sales": '["a","b"]'}
FREE = {"type": "bigint", "required": False}


def pipeline(*key: str, mode: str = "upsert", **keys: Any) -> Pipeline:
    source = {"type": "python", "function": "a:b"}
    by = {"key": list(key)} if key else {}
    declared = {"source": source, "table": "shop.sales", "mode": mode, **by, **keys}
    return Pipeline.model_validate(declared)


def table(*identifier: str, required: str = "ab", properties: dict[str, str] = OURS) -> Table:
    columns = tuple(Column(name, Plain("bigint"), required=name in required) for name in NAMES)
    own = (Column("_esker_hash", Plain("bigint")), Column("deleted", Plain("boolean")))
    schema = json.dumps(schema_json((*columns, *own), identifier))
    return Table(
        version="1",
        uuid="u",
        location="/sales",
        format_version=2,
        schema_id=0,
        schema=schema,
        columns=(*columns, *own),
        partition_fields=(),
        sort_fields=(),
        properties={**TABLE_DEFAULTS, **properties},
        snapshot=None,
        id=SALES,
    )


def changes(declared: Pipeline, present: Table, name: str | None = "sales") -> tuple[TableChange, ...]:
    return alterations(declared, present, Sent(present.columns[:3]), name=name).changes


def kinds(found: tuple[TableChange, ...]) -> list[str]:
    return [type(change).__name__ for change in found if type(change).__name__ != "AddColumns"]


@pytest.mark.parametrize(
    ("declared", "columns", "others"),
    [
        # What identifies rows may be neither empty nor dropped: it is taken back first.
        (pipeline("a", columns={"b": FREE}), ("a",), ["RelaxColumns"]),
        (pipeline("a", drop_columns=["b"]), ("a",), ["DropColumns"]),
        (pipeline(mode="append", drop_columns=["a"]), (), ["DropColumns"]),
        (pipeline("a"), ("a",), []),
        # A key that Iceberg cannot have, and keys that have several rows, are none.
        (pipeline("a", "b", "c"), (), []),
        (pipeline("a", "b", mode="delete_insert"), (), []),
        (pipeline("a", "b", mode="scd2"), (), []),
    ],
)
def test_what_a_pipeline_let_a_table_say_follows_its_key(
    declared: Pipeline, columns: tuple[str, ...], others: list[str]
) -> None:
    found = changes(declared, table("a", "b"))
    assert kinds(found) == ["IdentifyBy", *others]
    assert found[kinds(found).index("IdentifyBy")] == IdentifyBy(
        SALES, columns, said_by="esker.identifier.sales"
    )


def test_a_column_by_which_rows_were_sorted_is_dropped() -> None:
    """Without sort_by rows are sorted by the key: it leaves the order before it is dropped."""
    order = (SortField("a"), SortField("b"))
    found = changes(pipeline("a", drop_columns=["b"]), replace(table("a", "b"), sort_fields=order))
    assert kinds(found) == ["IdentifyBy", "Resort", "DropColumns"]
    assert found[1] == Resort(SALES, (SortField("a"),))


def test_a_longer_key() -> None:
    present = table("a", properties={"esker.identifier.sales": '["a"]'})
    assert changes(pipeline("a", "b"), present) == (
        IdentifyBy(SALES, ("a", "b"), said_by="esker.identifier.sales"),
    )
    assert changes(pipeline("a"), present) == ()


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({}, "sales"),
        ({"esker.identifier.other": '["a","b"]'}, "sales"),
        # Somebody changed it since.
        ({"esker.identifier.sales": '["a"]'}, "sales"),
        (OURS, None),
    ],
)
@pytest.mark.parametrize("declared", [pipeline("a"), pipeline(mode="append")])
def test_what_others_let_it_say_stays(
    properties: dict[str, str], name: str | None, declared: Pipeline
) -> None:
    assert changes(declared, table("a", "b", properties=properties), name) == ()


def test_a_key_whose_column_is_renamed() -> None:
    """What the pipeline named is known by the new name before the column has it."""
    new = {"n": {"type": "bigint", "renamed_from": "b", "required": True}}
    same = changes(pipeline("a", "n", columns=new), table("a", "b"))
    assert kinds(same) == ["SetProperties", "RenameColumns"]
    assert same[0].as_json()["properties"] == {}
    shorter = changes(pipeline("a", columns=new), table("a", "b"))
    assert kinds(shorter) == ["SetProperties", "RenameColumns", "IdentifyBy"]
    stopped = table("a", "b", properties={"esker.identifier.sales": '["a","n"]'})
    assert kinds(changes(pipeline("a", columns=new), stopped)) == ["RenameColumns", "IdentifyBy"]


def test_a_frozen_table_waits() -> None:
    [change] = changes(
        pipeline("a", evolution="freeze", columns=dict.fromkeys(NAMES, "bigint")), table("a", "b")
    )
    assert isinstance(change, IdentifyBy)
    assert change.needs_apply


def test_a_new_table_knows_who_named_its_key() -> None:
    """Unless it holds rows that the key does not identify: then it names none."""
    sent = Sent(tuple(Column(name, Plain("bigint")) for name in NAMES))
    made = creation(pipeline("a", "b"), SALES, sent, name="sales").changes
    [change] = made
    assert isinstance(change, CreateTable)
    assert change.table.identifier == ("a", "b")
    assert change.table.properties["esker.identifier.sales"] == '["a","b"]'
    [change] = without_key(made)
    assert isinstance(change, CreateTable)
    assert change.table.identifier == ()
    assert "esker.identifier.sales" not in change.table.properties
