"""Whether a pipeline has made the table whose changes a consumer reads."""

from __future__ import annotations

from esker.deliver.subscription import Subscription
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.table import find_table
from esker.engine.session import Engine
from esker.ledger.entry import read_head


def has_published(engine: Engine, subscription: Subscription) -> bool:
    """Tell whether the table is there, and of a table with a key whether a pipeline has published to it."""
    if find_table(engine, subscription.table) is None:
        return False
    if not subscription.pipeline.is_keyed:
        return True
    return read_head(Attempt(engine, subscription.table).properties) is not None
