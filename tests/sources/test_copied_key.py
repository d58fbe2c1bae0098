"""Which keys let a copy have the rows of its table: decisions, without Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from esker.engine.iceberg.columns import columns_of, schema_json
from esker.engine.iceberg.table import Table, TableId
from esker.engine.session import Engine
from esker.errors import ChangesNotFollowed
from esker.project import Project, load_project
from esker.project.pipelines import Pipeline
from esker.project.types import Column, Plain
from esker.sources.changed_rows import ChangedRows
from esker.sources.copied_key import CopiedKey
from tests.folder import Folder

COLUMNS = ("Order", "line", "price", "valid_from", "valid_to", "is_current")
SOURCE = {"type": "table", "table": "shop.orders", "read": "changes"}
ORDERS = TableId("lake", "shop.orders")


def key_of(mode: str, upstream: str, copy: str, own: str, where: str | None = None, **keys: Any) -> CopiedKey:
    """Return how a copy with a mode and a key follows a table that another mode writes."""
    writer = Pipeline.model_validate(
        {
            "source": {"type": "python", "function": "a:b"},
            "table": "shop.orders",
            "mode": mode,
            "key": upstream.split(),
        }
    )
    following = Pipeline.model_validate(
        {"source": SOURCE, "table": "shop.copy", "mode": copy, "key": own.split(), **keys}
    )
    return CopiedKey.of(following, "shop.orders", tuple(upstream.split()), COLUMNS, writer, where)


@pytest.mark.parametrize(
    ("given", "by", "needs_table", "may_repeat"),
    [
        # One row per key: the log alone tells all, but not which other rows the order has.
        (("upsert", "Order", "upsert", "order"), ("Order",), False, False),
        (("sync", "Order line", "delete_insert", "line order"), ("Order", "line"), False, False),
        (("upsert", "Order line", "delete_insert", "order"), ("Order",), True, False),
        # Several rows per key: rows are looked up by what the copy replaces.
        (("delete_insert", "Order", "delete_insert", "order"), ("Order",), True, False),
        (("delete_insert", "Order line", "delete_insert", "line"), ("line",), True, False),
        (("delete_insert", "Order", "delete_insert", "order line"), ("Order",), True, False),
        (("delete_insert", "Order", "upsert", "order line"), ("Order",), True, True),
        (("delete_insert", "Order", "upsert", "order", "line = 1"), ("Order",), True, True),
        (("scd2", "Order", "upsert", "order valid_from"), ("Order",), True, False),
        (("scd2", "Order", "upsert", "order", "is_current"), ("Order",), True, True),
    ],
)
def test_how_rows_are_found(
    given: tuple[str, ...], by: tuple[str, ...], needs_table: bool, may_repeat: bool
) -> None:
    found = key_of(*given)
    assert (found.by, found.needs_table, found.may_repeat) == (by, needs_table, may_repeat)


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (("upsert", "Order line", "upsert", "order"), "Write key: [Order, line]"),
        (("upsert", "Order", "upsert", "order line"), "Write key: [Order]"),
        (("upsert", "Order", "delete_insert", "line"), "Write key: [Order]"),
        (("delete_insert", "Order", "upsert", "order"), "Write mode: delete_insert"),
        (("delete_insert", "Order", "upsert", "line"), "alone or with further columns"),
        (("delete_insert", "Order", "delete_insert", "line"), "alone or with further columns"),
        (("scd2", "Order", "upsert", "order"), "Write key: [Order, valid_from], or where: is_current"),
        (("delete_insert", "Order", "delete_insert", "number"), "keep them in the transform"),
    ],
)
def test_keys_with_which_rows_would_be_lost(given: tuple[str, ...], remedy: str) -> None:
    with pytest.raises(ChangesNotFollowed) as caught:
        key_of(*given)
    assert remedy in caught.value.remedy


def test_a_transform_may_name_the_key_otherwise() -> None:
    """Each row has a key of its own there: the transform makes the copy's of it."""
    found = key_of(
        "upsert", "Order", "upsert", "number", transform="SELECT Order AS number, deleted FROM input"
    )
    assert (found.by, found.needs_table) == (("Order",), False)


@dataclass(frozen=True)
class _Engine:
    """As much of an engine as it takes to find the pipeline that writes a table."""

    project: Project


def test_the_writers_key_counts_also_where_the_table_still_says_another(tmp_path: Path) -> None:
    """A key that became longer: a copy with the old one would lose lines."""
    writer = {**Folder.files_pipeline(table="shop.orders"), "mode": "upsert", "key": ["order", "line"]}
    folder = Folder(tmp_path, pipelines={"orders": writer})
    schema = schema_json([Column("order", Plain("int"), True), Column("line", Plain("int"), True)], ["order"])
    said = Table("1", "u", "/orders", 2, 0, json.dumps(schema), columns_of(schema), (), (), {}, None, ORDERS)

    def copied(*key: str, table: Table = said) -> CopiedKey:
        copy = Pipeline.model_validate({"source": SOURCE, "table": "shop.copy", "mode": "upsert", "key": key})
        engine = cast(Engine, _Engine(load_project(folder.path)))
        return ChangedRows(engine, table, copy).key

    assert copied("order", "line").upstream == ("order", "line")
    with pytest.raises(ChangesNotFollowed):
        copied("order")
    # Of a table that nobody in the project writes, it is all that there is.
    other = replace(said, id=TableId("lake", "shop.others"))
    assert copied("order", table=other).upstream == ("order",)
