"""Carry rows to a target, and keep what comes back: counts, and dead letters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from esker.deliver.sending import COUNTED, OUTCOME, STOPPED, Counts, Sending, error_of, unfenced
from esker.engine.compat import arrow_schema_as_spark, to_arrow
from esker.engine.failures import explained
from esker.engine.kept import KeptFrames
from esker.engine.session import Engine
from esker.errors import ConsumerFenced
from esker.ledger.dead_letters import ARROW, DeadLetters

_BATCH, _BATCH_BYTES = 2_000, 16_000_000
"""Rows that are made into messages at a time: more would not stay near the processor."""
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
        outcome = pa.Table.from_batches(self.sending.send(_parts(rows.to_batches())), OUTCOME)
        return self._kept(outcome)

    def frame(self, rows: DataFrame) -> Counts:
        """Send rows from Spark's tasks. Raises what the target raises."""
        sending = replace(self.sending, fence=unfenced)  # of this process; it is watched here

        def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return sending.send(_parts(batches))

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
                counts = _counted(told)
                letters = outcome.where(~few)
                if counts.dead + counts.known + counts.resolved <= _LETTERS_HERE:
                    return self._kept(pa.concat_tables([told, to_arrow(letters).cast(OUTCOME)]))
                self.letters.make()
                self.letters.add(letters.select(*ARROW.names))
            finally:
                kept.let_go()
        _raise_stop(told)
        return counts

    def _kept(self, outcome: pa.Table) -> Counts:
        is_letter = pc.invert(pc.is_in(outcome.column("status"), pa.array([COUNTED, STOPPED])))
        # Also when the target has failed since: what is known of these rows stays known.
        self.letters.add(outcome.filter(is_letter).select(ARROW.names))
        _raise_stop(outcome)
        return _counted(outcome)


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


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Divide rows into parts that memory holds as objects of Python."""
    for batch in batches:
        size = min(_BATCH, max(1, len(batch) * _BATCH_BYTES // max(1, batch.nbytes)))
        for start in range(0, len(batch), size):
            yield batch.slice(start, size)


def _counted(outcome: pa.Table) -> Counts:
    return Counts(**{name: pc.sum(outcome.column(name)).as_py() or 0 for name in asdict(Counts())})


def _raise_stop(outcome: pa.Table) -> None:
    stops = outcome.filter(pc.equal(outcome.column("status"), STOPPED)).column("payload").to_pylist()
    if stops:
        raise error_of(stops[0])
