"""Carry rows to a target, and keep what comes back: counts, and dead letters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from esker.deliver.outcome import counted, kept_outcome, parts, raise_stop, sent_from_here
from esker.deliver.sending import COUNTED, OUTCOME, STOPPED, Counts, Sending, unfenced
from esker.engine.compat import arrow_schema_as_spark, to_arrow
from esker.engine.failures import explained
from esker.engine.kept import KeptFrames
from esker.engine.session import Engine
from esker.errors import ConsumerFenced
from esker.ledger.dead_letter_events import ARROW
from esker.ledger.dead_letters import DeadLetters

_LETTERS_HERE = 10_000
"""With more dead letters than this, Spark writes them."""
_LOOK = 1.0
"""Seconds between two looks at the fence while Spark's tasks send."""


@dataclass(frozen=True)
class Carrier:
    """Carries rows of one consumer."""

    engine: Engine
    letters: DeadLetters
    sending: Sending

    def rows(self, rows: pa.Table) -> Counts:
        """Send rows from this process. Raises what the target raises."""
        return sent_from_here(self.sending, self.letters, rows)

    def frame(self, rows: DataFrame) -> Counts:
        """Send rows from Spark's tasks. Raises what the target raises."""
        sending = replace(self.sending, fence=unfenced)  # of this process; it is watched here

        def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return sending.send(parts(batches))

        schema = StructType.fromJson(arrow_schema_as_spark(OUTCOME))
        kept = KeptFrames(self.engine)
        with (
            _watched(self.engine, self.sending.fence),
            explained(f'cannot deliver changes of table "{sending.table}"', self.engine.log),
        ):
            try:
                # Kept, as whoever looks at it twice would send everything twice.
                outcome = kept.keep(rows.mapInArrow(send, schema))
                few = F.col("status").isin(COUNTED, STOPPED)
                told = to_arrow(outcome.where(few))
                counts = counted(told)
                letters = outcome.where(~few)
                if counts.dead + counts.known + counts.resolved <= _LETTERS_HERE:
                    return kept_outcome(
                        self.letters, pa.concat_tables([told, to_arrow(letters).cast(OUTCOME)])
                    )
                self.letters.make()
                self.letters.add(letters.select(*ARROW.names))
            finally:
                kept.let_go()
        raise_stop(told)
        return counts


@contextmanager
def _watched(engine: Engine, fence: Callable[[], None]) -> Iterator[None]:
    """Stop Spark's jobs as soon as the fence falls, and raise what it raises."""
    fence()
    fallen: list[ConsumerFenced] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK):
            try:
                fence()
            except ConsumerFenced as error:
                fallen.append(error)
                engine.cancel()
                return

    thread = threading.Thread(target=watch, name="esker-fence", daemon=True)
    thread.start()
    try:
        yield
    except Exception:
        if not fallen:
            raise
    finally:
        done.set()
        thread.join()
    if fallen:
        raise fallen[0]
