"""Read a source by windows of time: what is due, step by step, each window until it is covered.

A window that cannot be read is left out of the step and of the position: it stays a gap, which the next
run finds and tries again. Nothing is written before all rows of a step are here.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import arrow_schema_as_spark
from esker.errors import (
    BackfillUnsuitable,
    EskerError,
    NoBeginning,
    SourceError,
    SourceRefused,
    SourceUnavailable,
    WindowFailed,
)
from esker.ledger.attempts import failed_windows, forget_failures, note_failure
from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.sources import WindowSettings
from esker.project.types import Column, columns_from_json
from esker.sources.restart import RESTARTS, Restart
from esker.sources.source import (
    MALFORMED,
    ORIGIN,
    RECORD,
    UNTIL,
    Fetched,
    Opening,
    Reader,
    Sent,
    Slice,
    Weight,
)
from esker.sources.span import Span
from esker.sources.spool import ArrowSpool, Spool
from esker.sources.windows import Coverage, Window, cut, due_windows, newest_end, seconds_of, told

_PEEKED = 20
"""Windows that are looked into for a person."""
_IN_VAIN = 3
"""So many windows that fail one after the other end a run, unless the newest one can be read."""
_MOST_GAPS = 60
"""Intervals that fit into a ledger entry. Beyond, windows behind a new gap wait until one is closed."""


UNTIL_FIELD = pa.field(UNTIL, pa.timestamp("us", tz="UTC"))
_MOMENT = timedelta(microseconds=1)


def last_moment(window: Window) -> datetime:
    """Return the last moment of a window: its end belongs to the next one."""
    return window.until - _MOMENT


class TimedSource(ABC):
    """A source that can be asked for what changed in a window of time."""

    schema: pa.Schema
    """The columns of its rows."""
    learns_clock = False
    """Its clock is known once it has answered. Until then `now` is this machine's."""

    @abstractmethod
    def now(self) -> datetime:
        """Return the time by the source's clock."""

    @abstractmethod
    def earliest(self) -> datetime | None:
        """Return where its records begin, if it can be asked."""

    @abstractmethod
    def pages(self, window: Window) -> Iterator[Any]:
        """Yield the rows of a window, page by page, as its spool takes them. Raises SourceUnavailable or
        SourceRefused; Restart when it must begin again."""

    def exceeds(self, window: Window, rows: int) -> bool:
        """Tell that a window has more rows, where that can be known before they are read."""
        return False

    def spool(self) -> Spool[Any]:
        """Return where its rows are kept on their way, with UNTIL beside them."""
        return ArrowSpool(self.schema.append(UNTIL_FIELD))

    def dated(self, rows: Any, window: Window) -> Any:
        """Return rows of a page with UNTIL: by default, all that is known is which window they are of."""
        moment = pa.scalar(last_moment(window), UNTIL_FIELD.type)
        return rows.append_column(UNTIL_FIELD, pa.repeat(moment, len(rows)))

    def check(self) -> None:  # noqa: B027
        """Raise SourceRefused for windows that it cannot be asked for."""

    @property
    def granule(self) -> int:
        """Windows begin and end at multiples of so many seconds."""
        return 1

    def close(self) -> None:  # noqa: B027
        """Give back connections."""


@dataclass(frozen=True)
class _Step:
    """The windows of one slice, and their rows once they are here."""

    windows: tuple[Window, ...]
    has_more: bool
    spool: Spool[Any] | None = None


class WindowedReader(Reader):
    """Reads what is due of a timed source. Its position is what has been covered."""

    def __init__(
        self, opening: Opening, source: TimedSource, settings: WindowSettings, span: Span | None = None
    ) -> None:
        self._opening, self._source, self._settings, self._span = opening, source, settings, span
        self._failed: dict[Window, str] = {}
        """In this run, and why: a window is tried once a run."""
        self._noted: set[Window] = set()
        self._has_read = False
        """The source has answered for a window in this run."""
        self._refusal: SourceRefused | None = None
        """What it said to the first window that it would not read."""
        self._empty: list[Window] = []
        """Read in this run, without rows. As long as there is no table, nothing else remembers them."""
        self._done: list[Window] = []
        """In the table since this run began. A range that is read again may have been covered before."""
        self._spools: list[Spool[Any]] = []
        self._now: datetime | None = None

    def again(self, span: Span) -> WindowedReader:
        if span.is_full:
            why = "A source that is read by windows is never seen as a whole, so nothing can be missing."
            raise BackfillUnsuitable(self._opening.name, why, "Name a range: --from and --to.")
        return type(self)(self._opening, self._source, self._settings, span)

    def plan(self, position: Position | None) -> list[Slice]:
        self._drop_spools()
        self._source.check()
        coverage = Coverage.from_json(position)
        self._forget_covered(coverage)
        tip = coverage.intervals[-1].end if coverage.intervals else 0
        windows: list[Window] = []
        has_more = False
        for window in self._due(coverage):
            is_other = windows and (window.end <= tip) != (windows[0].end <= tip)
            if is_other or len(windows) == self._settings.max_windows:
                has_more = True
                break
            windows.append(window)
        if not windows:
            return []
        return [
            Slice(
                position,
                coverage.with_windows(windows).as_json(),
                new_run_id(),
                0,
                told(windows),
                _Step(tuple(windows), has_more),
                len(windows),
                is_repair=windows[0].end <= tip or self._span is not None,
                until=windows[-1].until,
            )
        ]

    def fetch(self, slices: list[Slice]) -> Fetched:
        if not slices:
            return Fetched([])
        piece = slices[0]
        step: _Step = piece.content
        spool = self._source.spool()
        self._spools.append(spool)
        covered: list[Window] = []
        failures: list[EskerError] = []
        before = Coverage.from_json(piece.start).with_windows(self._empty)
        room = max(_MOST_GAPS, len(before.intervals))
        tried = in_vain = 0
        is_over = False
        for window in step.windows:
            if window.end > self._latest():
                break  # by the source's clock, which it has told meanwhile
            # No room for more gaps: what is behind a new one is for the next run.
            is_over = len(before.with_windows([*covered, window]).intervals) > room
            if is_over or spool.rows >= self._settings.split_at:
                break
            tried += 1
            parts, failure = self._read(window, spool)
            covered += parts
            in_vain = 0 if parts else in_vain + 1
            if failure is not None:
                failures.append(failure)
            if in_vain == _IN_VAIN:
                # Either nobody answers any more, or just these cannot be read.
                is_over, in_vain = not self._answers_elsewhere(before.with_windows(covered)), 0
            if is_over:
                break
        spool.finish()
        has_more = not is_over and (step.has_more or tried < len(step.windows))
        if self._has_read:
            self._note_failures(Coverage.from_json(piece.start))
        elif self._refusal is not None and not has_more:
            raise self._refusal  # as it would refuse all windows
        if not covered:
            return Fetched([], tuple(failures), has_more)
        if not spool.rows:
            self._empty += covered
        end = before.with_windows(covered).as_json()
        done = replace(step, windows=tuple(covered), spool=spool)
        fetched = replace(
            piece, end=end, bytes=spool.bytes, content=done, summary=told(covered), pieces=len(covered)
        )
        return Fetched([fetched], tuple(failures), has_more)

    def newest(self) -> Slice | None:
        """Return the rows of the newest window that has any, among a few."""
        every, latest = seconds_of(self._settings), self._latest()
        first = max(int(self._start().timestamp()), latest - _PEEKED * every)
        for window in reversed(list(cut(Window(first, latest), every))):
            piece = Slice(None, None, new_run_id(), 0, told([window]), _Step((window,), has_more=False))
            fetched = self.fetch([piece])
            if fetched.failures:
                raise fetched.failures[0]
            if fetched.slices and fetched.slices[0].content.spool.rows:
                return fetched.slices[0]
        return None

    def sent(self, slices: Sequence[Slice]) -> Sent:
        return Sent(columns_from_json(arrow_schema_as_spark(self._source.schema)))

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        return spooled_frame(self._opening, _spool(piece))

    def arrow(self, piece: Slice, columns: tuple[Column, ...]) -> pa.Table | None:
        most = self._opening.pipeline.small_lane
        spool = _spool(piece)
        if spool.rows > most.max_rows or spool.bytes > most.max_bytes or MALFORMED in spool.filled:
            return None
        return spool.table()

    def weight(self, piece: Slice) -> Weight:
        spool = _spool(piece)
        return Weight(spool.rows, spool.bytes)

    def settled(self, piece: Slice) -> None:
        windows = piece.content.windows
        self._done += windows
        state = self._opening.state
        if state is not None:
            for window in windows:
                forget_failures(state, self._project, self._opening.name, window.start, window.end)

    def close(self) -> None:
        self._drop_spools()
        self._source.close()

    @property
    def _project(self) -> str:
        return self._opening.engine.project.state_key

    def _due(self, coverage: Coverage) -> Iterator[Window]:
        """Yield what is to be read, oldest first."""
        if self._span is not None:
            yield from self._of_span(self._span)
            return
        left_out = self._left_out()
        known = coverage.with_windows(self._empty)
        for window in due_windows(self._settings, known, self._start(), self._clock()):
            if not left_out.covers(window):
                yield window

    def _of_span(self, span: Span) -> Iterator[Window]:
        start = int((span.since or self._start()).timestamp())
        end = min(int(span.until.timestamp()), self._latest()) if span.until else self._latest()
        failed = Coverage.of(self._failed)
        for gap in Coverage.of([*self._empty, *self._done]).gaps(start, end):
            for window in cut(gap, seconds_of(self._settings)):
                if not failed.covers(window):
                    yield window

    def _latest(self) -> int:
        """Return where the newest window ends that may be read."""
        if self._reaches_now:
            granule = self._source.granule
            return (int(self._clock().timestamp()) // granule + 1) * granule
        return newest_end(self._settings, self._clock())

    def _left_out(self) -> Coverage:
        """Return what is not tried: it has failed in this run, or too often."""
        state = self._opening.state
        if state is None or self._span is not None:
            return Coverage.of(self._failed)
        failed = failed_windows(state, self._project, self._opening.name)
        most = self._settings.max_attempts
        given_up = [Window(each.start, each.end) for each in failed if each.attempts >= most]
        # Together: both halves of a window may have failed, each for itself.
        return Coverage.of([*self._failed, *given_up])

    def _answers_elsewhere(self, coverage: Coverage) -> bool:
        """Tell whether the newest window that is due can be read. What it holds is loaded in its turn."""
        due = list(self._due(coverage))
        if not due:
            return True  # there is no other
        try:
            found = self._rows(due[-1])
        except SourceError:
            return False
        if found is not None:
            found.close()
        self._has_read = True
        return True

    def _start(self) -> datetime:
        start = self._settings.start or self._source.earliest()
        if start is None:
            raise NoBeginning(self._opening.name, "The source cannot tell where its records begin.")
        return start

    def _clock(self) -> datetime:
        """Return the earlier of two clocks: whichever is fast would mark as read what is still to come."""
        if self._now is None:
            now = self._source.now()
            self._now = now if self._reaches_now else min(now, datetime.now(UTC))
        return self._now

    @property
    def _reaches_now(self) -> bool:
        return self._span is not None and self._span.reaches_now

    def _learn_clock(self, asked: float) -> None:
        """Take the source's clock as it was when the source was asked, unless this machine's is behind."""
        then = self._source.now() - timedelta(seconds=time.monotonic() - asked)
        self._now = min(self._clock(), then)

    def _read(
        self, window: Window, spool: Spool[Any], *, overlaps: bool = True
    ) -> tuple[list[Window], WindowFailed | None]:
        """Bring a window's rows here; return which parts of it are, and why the rest is not."""
        asked = time.monotonic()
        try:
            found = self._rows(window, overlaps=overlaps)
        except SourceError as error:
            if isinstance(error, SourceRefused):
                self._refusal = self._refusal or error
            self._failed[window] = f"{error.message}: {error.reason}"
            return [], WindowFailed(str(window), self._failed[window])
        self._has_read = True
        if self._source.learns_clock and not self._reaches_now:
            self._learn_clock(asked)
            if window.end > self._latest():
                # What is read of it counts for nothing: more may come.
                if found is not None:
                    found.close()
                return [], None
        if found is None:
            halves = window.halves(self._source.granule)
            assert halves is not None
            parts: list[Window] = []
            failure: WindowFailed | None = None
            left_out = self._left_out()
            for half in halves:
                if left_out.covers(half):
                    continue
                # The second half begins where the first one ends: what is late there is found by that one.
                done, why = self._read(half, spool, overlaps=overlaps and half is halves[0])
                parts += done
                failure = failure or why
            return parts, failure
        try:
            for piece in found.pieces():
                spool.add(piece)
        finally:
            found.close()
        return [window], None

    def _forget_covered(self, coverage: Coverage) -> None:
        """Forget failures of what is in the table: whoever loaded it may have been stopped before that."""
        state = self._opening.state
        if state is None:
            return
        failed = failed_windows(state, self._project, self._opening.name)
        for window in coverage.intervals:
            if any(each.start < window.end and window.start < each.end for each in failed):
                forget_failures(state, self._project, self._opening.name, window.start, window.end)

    def _note_failures(self, coverage: Coverage) -> None:
        """Count failures of windows that are not in the table. Only when others could be read: else it is not
        the window's fault."""
        state = self._opening.state
        for window, why in self._failed.items():
            if state is not None and window not in self._noted and not coverage.covers(window):
                self._noted.add(window)
                note_failure(state, self._project, self._opening.name, window.start, window.end, why)

    def _rows(self, window: Window, *, overlaps: bool = True) -> Spool[Any] | None:
        """Return a window's rows; None when they are too many and it can be halved."""
        overlap = int(self._settings.overlap.total_seconds()) if overlaps else 0
        asked = Window(window.start - overlap, window.end)
        can_halve = window.halves(self._source.granule) is not None
        if can_halve and self._source.exceeds(asked, self._settings.split_at):
            return None
        for _ in range(RESTARTS):
            spool = self._source.spool()
            try:
                for page in self._source.pages(asked):
                    spool.add(self._source.dated(page, asked))
                    if can_halve and spool.rows > self._settings.split_at:
                        spool.close()
                        return None
            except Restart as error:
                spool.close()
                why = str(error)
            except BaseException:
                spool.close()
                raise
            else:
                spool.finish()
                return spool
        raise SourceUnavailable(self._opening.pipeline.source.reads, why, RESTARTS)

    def _drop_spools(self) -> None:
        while self._spools:
            self._spools.pop().close()


def spooled_frame(opening: Opening, spool: ArrowSpool) -> DataFrame:
    """Return rows that are here, with ORIGIN beside them."""
    rows = spool.frame(opening.engine).withColumn(ORIGIN, F.lit(opening.pipeline.source.reads))
    # Where all records could be read, nobody need look whether one could not.
    return rows if MALFORMED in spool.filled else rows.drop(MALFORMED, RECORD)


def _spool(piece: Slice) -> ArrowSpool:
    spool = piece.content.spool
    assert isinstance(spool, ArrowSpool)
    return spool
