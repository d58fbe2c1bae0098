"""Which keys let a copy have the rows of its table: decisions, without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from esker.errors import ChangesNotFollowed
from esker.project.pipelines import Pipeline
from esker.sources.copied_key import CopiedKey

COLUMNS = ("Order", "line", "price", "valid_from", "valid_to", "is_current")
SOURCE = {"type": "table", "table": "shop.orders", "read": "changes"}


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
