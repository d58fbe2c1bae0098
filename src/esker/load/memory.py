"""How a keyed batch reaches the memory of deletes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from esker.engine.iceberg.commit import Attempt
from esker.ledger.delete_memory import DeleteMemory


@dataclass(frozen=True)
class Memory:
    """The memory of a table's deletes, as far as there is one."""

    known: Callable[[Attempt], DeleteMemory | None]
    """Returns the one that the table names."""
    open: Callable[[], DeleteMemory]
    """Opens it, and makes it when there is none."""
    late: timedelta
    """How long a delete is remembered."""
    longest: timedelta
    """How long any of the project's pipelines wants it to be. The memory may know of others."""
