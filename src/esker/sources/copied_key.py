"""Which rows of a copy a change of its source belongs to: the key there, and the key here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from esker.errors import ChangesNotFollowed
from esker.project import Pipeline

SEVERAL = ("delete_insert", "scd2")
"""Modes in which several rows have one key."""


@dataclass(frozen=True)
class CopiedKey:
    """How the rows of a copy are found by what a change log tells."""

    upstream: tuple[str, ...]
    """The key of the table that is copied."""
    own: tuple[str, ...]
    """The key of the copy, in columns of the table that is copied."""
    by: tuple[str, ...]
    """The rows of a change are those with the same values here."""
    needs_table: bool
    """The log alone does not tell which rows are there."""
    may_repeat: bool
    """Several rows may have the key of the copy, which keeps one of them."""

    @classmethod
    def of(
        cls,
        copy: Pipeline,
        table: str,
        upstream: Sequence[str],
        columns: Sequence[str],
        writer: Pipeline | None,
        where: str | None,
    ) -> CopiedKey:
        """Return how a pipeline copies a table with a key, `columns` and the pipeline that writes it.

        Raises ChangesNotFollowed where the copy could not have the rows of the table.
        """
        names = {name.lower(): name for name in columns}
        theirs = {name.lower() for name in upstream}
        ours = {name.lower() for name in copy.key}
        there = tuple(upstream)
        has_several = writer is not None and writer.mode in SEVERAL
        key, keys = f"[{', '.join(copy.key)}]", f"[{', '.join(upstream)}]"

        def refused(why: str, remedy: str) -> ChangesNotFollowed:
            several = f"Several of its rows have one key {keys}" if has_several else f"Its key is {keys}"
            return ChangesNotFollowed(table, f"{several}, and the copy has key {key}: {why}.", remedy)

        if not ours <= names.keys():
            if has_several:
                why = "the table has no such columns to find the rows by that a change belongs to"
                raise refused(why, "Name columns of the table in key:, and keep them in the transform.")
            # A transform makes them of the key there: each row still has its own.
            return cls(there, there, there, needs_table=False, may_repeat=False)
        own = tuple(names[name.lower()] for name in copy.key)
        if not has_several and ours == theirs:
            return cls(there, own, there, needs_table=False, may_repeat=False)
        is_part = ours <= theirs
        if is_part and copy.mode == "delete_insert":
            return cls(there, own, own, needs_table=True, may_repeat=False)
        if writer is None or not has_several:
            why = "rows would replace each other, or stay under a key that they no longer have"
            raise refused(why, f"Write key: {keys}")
        if not is_part and not ours >= theirs:
            why = "nothing tells which rows of the copy a change belongs to"
            raise refused(why, f"Write key: {keys}, alone or with further columns.")
        begin, _, current = writer.versions.names
        is_history = writer.mode == "scd2"
        if copy.mode == "upsert" and is_part and where is None:
            remedy = f"Write mode: delete_insert, or add columns to key: that tell rows of one {keys} apart."
            if is_history:
                more = ", ".join((*upstream, begin))
                remedy = f"Write key: [{more}], or where: {current} to copy the current versions only."
            raise refused("in mode upsert it would keep one of them", remedy)
        return cls(
            there,
            own,
            own if is_part else there,
            needs_table=True,
            may_repeat=copy.mode == "upsert" and not (is_history and {*theirs, begin.lower()} <= ours),
        )
