"""The registry of Esker's own tables: how their names end, and how what is in them may change.

Whoever must know them asks here: names that pipelines may not use, `esker sql`, `esker fsck`, and everything
that removes files or rows. A new one is added here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

_BY_THE_TABLE = "Write to the table itself: what changes there is written down here."


@dataclass(frozen=True)
class SystemTableKind:
    """One kind of table that Esker writes for itself."""

    ending: str
    """How the name ends: `shop.orders__files` lies beside `shop.orders`."""
    remedy: str = _BY_THE_TABLE
    """What to do instead of changing the table."""
    is_filled: bool = False
    """Its rows come from the outbox of the table that it lies beside, which alone can say what it lacks."""


FILES = SystemTableKind("__files")
CHANGES = SystemTableKind("__changes", is_filled=True)
QUARANTINE = SystemTableKind(
    "__quarantine",
    "esker quarantine replay and esker quarantine discard take rows out of it.",
    is_filled=True,
)
DELETES = SystemTableKind("__deletes", is_filled=True)
QUALITY = SystemTableKind(
    "__quality", "Each run adds what its checks found; esker quality shows it.", is_filled=True
)
POSITIONS = SystemTableKind("__positions", "esker backfill loads from another position.")
DEAD_LETTERS = SystemTableKind("__dead", "esker deliver CONSUMER --retry-dead sends what is in it once more.")
"""Its name begins with a consumer's: `shop.search__dead`."""

BESIDE_A_TABLE = (FILES, CHANGES, QUARANTINE, DELETES, QUALITY, POSITIONS)
"""Kinds that lie beside a pipeline's table."""
ALL_KINDS = (*BESIDE_A_TABLE, DEAD_LETTERS)


def reserved_ending(name: str, *, kinds: tuple[SystemTableKind, ...] = ALL_KINDS) -> str | None:
    """Return how a name ends if it is one of Esker's own; catalogs differ in whether case counts."""
    return next((kind.ending for kind in kinds if name.lower().endswith(kind.ending)), None)
