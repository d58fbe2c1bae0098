"""Guards: what is too much, or too little, to happen unseen. A batch that trips one is held.

A person who approves a batch approves the figures that were shown. The batch is compared anew then, and
held again when it would be worse by now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from esker.contracts.rules import RowRules, Tally
from esker.errors import Held, RulesBroken, Tripped
from esker.project.contract.model import Amount
from esker.project.pipelines import Pipeline

Approved = Mapping[str, int]
"""By the name of a guard, the figure that a person has seen and approved."""

_ENOUGH = 10
"""Sizes of so few batches tell nothing about what is usual."""
_TIMES, _TIMES_WHOLE = 100, 10
_SMALL, _SMALL_WHOLE = 10_000, 1_000
"""Differences of fewer rows are never unusual: ten rows after a hundred batches of one are no alarm."""


@dataclass(frozen=True)
class Guards:
    """The guards of one batch."""

    name: str
    table: str
    pipeline: Pipeline
    approved: Approved = field(default_factory=dict)
    pieces: int = 1
    """How many files, or the like, the batch was read from."""
    is_off: bool = False
    """A person wrote the rows by a statement, and has seen what it says."""
    is_whole: bool = False
    """The batch is all that the source holds."""
    rules: RowRules = field(default_factory=RowRules)
    """What the rows are checked by: each says how many may break it."""
    sizes: Callable[[], Sequence[int]] = lambda: ()
    """Returns the rows of the pipeline's last batches: per piece, or whole where a batch is all there is."""

    def check(self, rows: int, deletes: int, live: Callable[[], int], tally: Tally | None = None) -> None:
        """Raise Held for a batch of so many rows that would delete so many of the rows that are live.

        `tally` counts the rows that break rules. Raises RulesBroken for too many of them.
        """
        if self.is_off:
            return
        found = [self._size(rows), self._least(rows, live), self._deletes(deletes, live), self._unusual(rows)]
        if tally is not None:
            self._fail(tally)
            found += [self._rejected(tally), *self._broken(tally)]
        tripped = [each for each in found if each is not None]
        if any(not self._is_approved(each) for each in tripped):
            raise Held(self.name, self.table, tripped)

    def _is_approved(self, tripped: Tripped) -> bool:
        seen = self.approved.get(tripped.guard)
        if seen is None:
            return False
        return tripped.rows <= seen if tripped.rows > tripped.allowed else tripped.rows >= seen

    def _fail(self, tally: Tally) -> None:
        """Raise RulesBroken when more rows break a rule than the contract lets a run end well with."""
        counts = [(rule.name, tally.broken.get(rule.name, 0), rule.limits) for rule in self.rules.all]
        for name, count, limits in [("rows", tally.rejected, self.rules.limits), *counts]:
            most = limits.fail_above
            if most is not None and most.is_exceeded(count, tally.rows):
                raise RulesBroken(self.name, name, count, tally.rows, str(most))

    def _rejected(self, tally: Tally) -> Tripped | None:
        """Return what is wrong when too many rows go to the quarantine, or all."""
        if not tally.rejected:
            return None
        limit, share = self.rules.limits.hold_above, self.pipeline.guard.max_quarantined
        most = Amount(share, is_share=True) if share is not None else limit
        told = f"{tally.rejected:,} of its {tally.rows:,} rows would go to the quarantine"
        if most is not None and most.is_exceeded(tally.rejected, tally.rows):
            allowed = int(most.number * tally.rows) if most.is_share else int(most.number)
            return Tripped("max_quarantined", tally.rejected, allowed, f"{told}, and at most {most} may")
        if tally.rejected >= tally.rows and self.pipeline.quarantines:
            return Tripped("max_quarantined", tally.rejected, tally.rows - 1, f"{told}: none would be loaded")
        return None

    def _broken(self, tally: Tally) -> Iterator[Tripped]:
        """Yield the rules that more rows break than may."""
        for rule in self.rules.all:
            count = tally.broken.get(rule.name, 0)
            told = f'{count:,} of its {tally.rows:,} rows break the rule "{rule.name}"'
            most = rule.limits.hold_above
            if most is not None and most.is_exceeded(count, tally.rows):
                allowed = int(most.number * tally.rows) if most.is_share else int(most.number)
                yield Tripped(f"rule {rule.name}", count, allowed, f"{told}, and at most {most} may")
            elif rule.is_exceeded(count, tally.rows):
                # More of the same is worse, whatever the bound says.
                told += f", and their number {rule.bound}"
                yield Tripped(f"rule {rule.name}", count, count - 1, told)

    def _size(self, rows: int) -> Tripped | None:
        most = self.pipeline.guard.max_rows
        if most is None or rows <= most:
            return None
        return Tripped("max_rows", rows, most, f"it has {rows:,} rows, and at most {most:,} are allowed")

    def _least(self, rows: int, live: Callable[[], int]) -> Tripped | None:
        least = self.pipeline.guard.min_rows
        if least is not None:
            told = f"it has {rows:,} rows, and at least {least:,} are expected"
            return Tripped("min_rows", rows, least, told) if rows < least else None
        if not self.is_whole or rows or not live():
            return None
        return Tripped("min_rows", 0, 1, f"it has no row at all, and the table has {live():,}")

    def _deletes(self, deletes: int, live: Callable[[], int]) -> Tripped | None:
        share = self.pipeline.guard.max_delete
        if share is None and self.is_whole and self.pipeline.mode != "replace":
            share = 0.1
        if share is None or not deletes:
            return None
        present = live()
        most = int(present * share)
        if deletes <= most:
            return None
        told = f"it would delete {deletes:,} of {present:,} rows, and at most {share:.0%} may go at a time"
        return Tripped("max_delete", deletes, most, told)

    def _unusual(self, rows: int) -> Tripped | None:
        """Return what is wrong with a size that is far from the usual, and seen for the first time."""
        is_whole = self.is_whole
        times = self.pipeline.guard.times_usual or (_TIMES_WHOLE if is_whole else _TIMES)
        small = _SMALL_WHOLE if is_whole else _SMALL
        if times == "off" or (rows < small and not is_whole):
            return None
        sizes = self.sizes()
        if len(sizes) < _ENOUGH:
            return None
        size = rows if is_whole else rows // self.pieces
        usual = int(median(sizes))
        each = "" if is_whole else " a file"
        surplus = rows - (usual if is_whole else usual * self.pieces)
        if size > max(usual * times, *sizes) and surplus >= small:
            told = f"it has {size:,} rows{each}, more than {times} times the usual {usual:,}"
            return Tripped("times_usual", size, usual * times, told)
        if is_whole and size * times < usual and size < min(sizes) and -surplus >= small:
            told = f"it has {size:,} rows, and {times} times as many are less than the usual {usual:,}"
            return Tripped("times_usual", size, -(-usual // times), told)
        return None
