"""Windows that cannot be read never keep others from being read, and never for ever from being tried."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from esker.errors import NoBeginning, SourceRefused, SourceUnavailable, WindowFailed
from esker.ledger.attempts import failed_windows
from esker.ledger.state import State
from esker.project import load_project
from esker.project.sources.windows import WindowSettings
from esker.sources.span import Span
from esker.sources.windowed import TimedSource, WindowedReader
from esker.sources.windows import Coverage, Window
from tests.folder import Folder

START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
QUARTER = 900
DOWN = SourceUnavailable("feed", "It answers 500.", 6)
REFUSED = SourceRefused("feed", "It answers 404 Not Found.")
Covered = list[tuple[int, int]]


class Feed(TimedSource):
    """A source with a row a second, some of which cannot be read."""

    schema = pa.schema([("id", pa.int64())])

    def __init__(self, quarters: int, bad: dict[int, Exception] | None = None) -> None:
        self._now, self.bad = START + quarters * QUARTER, bad or {}
        self.asked: list[Window] = []
        self.read = 0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._now, UTC)

    def earliest(self) -> datetime:
        return datetime.fromtimestamp(START, UTC)

    def pages(self, window: Window) -> Iterator[pa.Table]:
        self.asked.append(window)
        for at in range(max(window.start, START), window.end, 100):
            self.read += 100
            yield pa.table({"id": pa.array(range(at, min(at + 100, window.end)), pa.int64())})
        for second, error in self.bad.items():
            if window.start <= START + second < window.end:
                raise error


class Pipeline:
    """Runs one after the other, as a scheduler starts them."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.settings = WindowSettings.model_validate({"every": "15m", **settings})
        self.state = State.open(load_project(Folder(folder / "project").path))
        self.position: Any = None
        self.failures: list[str] = []

    def run(self, feed: Feed, steps: int = 200) -> Covered:
        """Return the quarters that are covered afterwards. Fails when the run does not end."""
        self.failures = []
        reader = self.reader(feed)
        for _ in range(steps):
            fetched = reader.fetch(reader.plan(self.position))
            assert all(isinstance(failure, WindowFailed) for failure in fetched.failures)
            self.failures += [failure.message for failure in fetched.failures]
            for piece in fetched.slices:
                reader.settled(piece)
                self.position = piece.end
            if not fetched.has_more:
                reader.close()
                return self.covered
        raise AssertionError("the run does not end")

    def reader(self, feed: Feed) -> WindowedReader:
        opening: Any = SimpleNamespace(
            name="p",
            state=self.state,
            pipeline=SimpleNamespace(source=SimpleNamespace(reads="feed")),
            engine=SimpleNamespace(project=SimpleNamespace(state_key="k")),
        )
        return WindowedReader(opening, feed, self.settings)

    @property
    def covered(self) -> Covered:
        intervals = Coverage.from_json(self.position).intervals
        return [((each.start - START) // QUARTER, (each.end - START) // QUARTER) for each in intervals]

    @property
    def attempts(self) -> list[int]:
        return [each.attempts for each in failed_windows(self.state, "k", "p")]


def test_both_halves_of_a_window_fail(tmp_path: Path) -> None:
    """The run ends, everything else is read, and in the end the window is given up."""
    pipeline = Pipeline(tmp_path, split_at=500, max_windows=2, max_attempts=2)
    bad: dict[int, Exception] = {QUARTER + 10: DOWN, 2 * QUARTER - 10: DOWN}
    for quarters in (10, 20, 30):
        feed = Feed(quarters, bad)
        found = pipeline.run(feed)
        assert (found[0][0], found[-1][1]) == (0, quarters)
        assert len([each for each in feed.asked if each == Window(START + 900, START + 1800)]) <= 1
    assert pipeline.failures == []
    assert pipeline.attempts == [2, 2]


def test_a_window_that_is_refused(tmp_path: Path) -> None:
    """In later runs it is the first that is asked for: others are read all the same."""
    pipeline = Pipeline(tmp_path, max_attempts=3)
    bad: dict[int, Exception] = {QUARTER + 5: REFUSED}
    for hour in (1, 2, 3):
        assert pipeline.run(Feed(4 * hour, bad)) == [(0, 1), (2, 4 * hour)]
        assert pipeline.attempts == [hour]
    assert len(pipeline.failures) == 1
    pipeline.run(Feed(16, bad))
    assert pipeline.failures == []


def test_a_source_that_refuses_everything(tmp_path: Path) -> None:
    """That is no fault of windows: the run ends with what the source says, and nothing is counted."""
    pipeline = Pipeline(tmp_path)
    feed = Feed(20, dict.fromkeys(range(0, 20 * QUARTER, 60), REFUSED))
    with pytest.raises(SourceRefused, match="refuses"):
        pipeline.run(feed)
    assert pipeline.attempts == []
    assert len(feed.asked) == 4


def test_a_source_that_is_down(tmp_path: Path) -> None:
    """Three windows and the newest one are tried, not all of a day."""
    pipeline = Pipeline(tmp_path)
    feed = Feed(96, dict.fromkeys(range(0, 96 * QUARTER, 60), DOWN))
    assert pipeline.run(feed) == []
    assert len(feed.asked) == 4
    assert (len(pipeline.failures), pipeline.attempts) == (3, [])


def test_many_windows_that_cannot_be_read(tmp_path: Path) -> None:
    """More than those after which a run ends: later windows are read, and these are given up one day."""
    pipeline = Pipeline(tmp_path, max_attempts=3)
    bad: dict[int, Exception] = {QUARTER * each + 5: DOWN for each in (4, 5, 6, 7)}
    assert pipeline.run(Feed(4, bad)) == [(0, 4)]
    for times, quarters in enumerate((12, 16, 20), start=1):
        assert pipeline.run(Feed(quarters, bad)) == [(0, 4), (8, quarters)]
        assert pipeline.attempts == [times] * 4
    assert len(pipeline.failures) == 4
    assert pipeline.run(Feed(24, bad)) == [(0, 4), (8, 24)]
    assert pipeline.failures == []


def test_no_room_for_further_gaps(tmp_path: Path) -> None:
    """A position with as many gaps as it can hold still goes on at its end; a gap more waits."""
    pipeline = Pipeline(tmp_path, max_attempts=1)
    every_other: dict[int, Exception] = {2 * QUARTER * each + QUARTER + 5: DOWN for each in range(59)}
    assert len(pipeline.run(Feed(119, every_other))) == 60
    assert pipeline.run(Feed(200, every_other))[-1] == (118, 200)
    assert len(pipeline.covered) == 60
    assert pipeline.run(Feed(210, every_other | {204 * QUARTER: DOWN}))[-1] == (118, 204)


def test_overlap_is_read_once(tmp_path: Path) -> None:
    """What lies before a window is not read again with each of its parts."""
    pipeline = Pipeline(tmp_path, split_at=300, overlap="15m")
    pipeline.run(Feed(1))
    feed = Feed(2)
    assert pipeline.run(feed) == [(0, 2)]
    assert {each.start for each in feed.asked if each.start < START + QUARTER} == {START}
    assert feed.read < 8 * QUARTER


def test_a_window_that_is_alone(tmp_path: Path) -> None:
    """Whether it is its fault or the source's nobody can tell: it is tried again, and not counted."""
    pipeline = Pipeline(tmp_path, max_attempts=2)
    for _ in range(4):
        pipeline.run(Feed(1, {5: DOWN}))
        assert (len(pipeline.failures), pipeline.attempts) == (1, [])
    for attempts in (1, 2):
        pipeline.run(Feed(1 + attempts, {5: DOWN}))
        assert pipeline.attempts == [attempts]
    pipeline.run(Feed(4, {5: DOWN}))
    assert pipeline.failures == []


def test_halves_keep_the_count_of_their_window(tmp_path: Path) -> None:
    """Of a window that failed before, one half is read: the other one has failed as often, and once more."""
    pipeline = Pipeline(tmp_path, max_attempts=3)
    for quarters in (3, 4):
        pipeline.run(Feed(quarters, {QUARTER + 5: DOWN}))
    pipeline.settings = pipeline.settings.model_copy(update={"split_at": 500})
    pipeline.run(Feed(5, {QUARTER + 5: DOWN}))
    [failed] = failed_windows(pipeline.state, "k", "p")
    assert (failed.start - START, failed.end - START, failed.attempts) == (900, 1350, 3)
    feed = Feed(6, {QUARTER + 5: DOWN})
    pipeline.run(feed)
    assert (pipeline.failures, min(each.start for each in feed.asked) - START) == ([], 5 * QUARTER)


def test_failures_of_a_whole_window_are_forgotten_with_its_halves(tmp_path: Path) -> None:
    """What is read is no failure, though other windows were tried when it was one."""
    pipeline = Pipeline(tmp_path, max_attempts=5)
    pipeline.run(Feed(3, {QUARTER + 5: DOWN}))
    assert pipeline.attempts == [1]
    pipeline.settings = pipeline.settings.model_copy(update={"split_at": 500})
    pipeline.run(Feed(4))
    assert (pipeline.covered, pipeline.attempts) == ([(0, 4)], [])


def test_failures_of_what_is_covered_are_forgotten(tmp_path: Path) -> None:
    """Its rows are in the table: whoever loaded them was stopped before that was noted."""
    pipeline = Pipeline(tmp_path, max_attempts=1)
    pipeline.run(Feed(3, {QUARTER + 5: DOWN}))
    assert (pipeline.covered, pipeline.attempts) == ([(0, 1), (2, 3)], [1])
    pipeline.position = Coverage.of([Window(START, START + 3 * QUARTER)]).as_json()
    pipeline.run(Feed(3))
    assert pipeline.attempts == []


def test_a_covered_window_that_cannot_be_read_again(tmp_path: Path) -> None:
    """A backfill that fails takes nothing out of the table: nothing is missing."""
    pipeline = Pipeline(tmp_path, max_attempts=1)
    pipeline.run(Feed(3))
    reader = pipeline.reader(Feed(3, {QUARTER + 5: DOWN})).again(
        Span(since=Feed(0).now(), until=Feed(3).now())
    )
    fetched = reader.fetch(reader.plan(pipeline.position))
    reader.close()
    assert (len(fetched.failures), len(fetched.slices), pipeline.attempts) == (1, 1, [])


def test_a_source_without_a_beginning(tmp_path: Path) -> None:
    """Nobody knows where the first window begins: the project file has to say so."""
    feed = Feed(4)
    feed.earliest = lambda: None  # type: ignore[method-assign,assignment,return-value]
    with pytest.raises(NoBeginning, match='"p"'):
        Pipeline(tmp_path).run(feed)
