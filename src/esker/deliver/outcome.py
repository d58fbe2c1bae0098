"""What became of rows that were sent: counts, dead letters, and the error that ended the sending."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from esker.deliver.sending import COUNTED, OUTCOME, STOPPED, Counts, Sending, error_of
from esker.ledger.dead_letter_events import ARROW, Waiting

_BATCH, _BATCH_BYTES = 2_000, 16_000_000
"""Rows that are made into messages at a time: more would not stay near the processor."""


class Letters(Protocol):
    """The dead letters of a consumer."""

    def waiting(self) -> Waiting:
        """Return the letters that are dead now."""

    def add(self, events: pa.Table) -> None:
        """Append events."""


def sent_from_here(sending: Sending, letters: Letters, rows: pa.Table) -> Counts:
    """Send rows from this process, keep what failed, and return the counts. Raises what the target raises."""
    outcome = pa.Table.from_batches(sending.send(parts(rows.to_batches())), OUTCOME)
    return kept_outcome(letters, outcome)


def kept_outcome(letters: Letters, outcome: pa.Table) -> Counts:
    """Write down the dead letters of an outcome and return its counts. Raises the error that is in it."""
    is_letter = pc.invert(pc.is_in(outcome.column("status"), pa.array([COUNTED, STOPPED])))
    # Also when the target has failed since: what is known of these rows stays known.
    letters.add(outcome.filter(is_letter).select(ARROW.names))
    raise_stop(outcome)
    return counted(outcome)


def parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Divide rows into parts that memory holds as objects of Python."""
    for batch in batches:
        size = min(_BATCH, max(1, len(batch) * _BATCH_BYTES // max(1, batch.nbytes)))
        for start in range(0, len(batch), size):
            yield batch.slice(start, size)


def counted(outcome: pa.Table) -> Counts:
    """Return the counts of an outcome."""
    return Counts(**{name: pc.sum(outcome.column(name)).as_py() or 0 for name in asdict(Counts())})


def raise_stop(outcome: pa.Table) -> None:
    """Raise the error that ended a sending, if one did."""
    stops = outcome.filter(pc.equal(outcome.column("status"), STOPPED)).column("payload").to_pylist()
    if stops:
        raise error_of(stops[0])
