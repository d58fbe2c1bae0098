"""What must be true of every kind of source."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from _pytest.mark import ParameterSet

from esker.events import Step
from esker.project.source_kinds import BUILT_IN
from tests.folder import Folder
from tests.scenarios.test_kill import run_and_kill
from tests.sources.kinds import KINDS, PLUGGED_IN, Kind

pytestmark = pytest.mark.spark


MARKS = {"bucket": [pytest.mark.server, pytest.mark.soak]}
"""What a bucket does otherwise than a disk is tested on its own; this is long."""
KILLED_INSIDE = ("jdbc", "tides")
"""Kinds that `make test` kills inside a batch, too; `make soak` does so with all."""


def kinds(*, drift: bool = False) -> list[ParameterSet]:
    """Return all kinds."""
    names = [name for name, kind in KINDS.items() if kind.can_drift or not drift]
    return [pytest.param(name, marks=MARKS.get(name, [])) for name in names]


def kills() -> list[ParameterSet]:
    """Return all kinds, each with the steps at which it is killed."""
    after = [pytest.param(name, Step.AFTER_COMMIT, marks=MARKS.get(name, [])) for name in KINDS]
    inside = [
        pytest.param(
            name,
            Step.RECORDED,
            marks=MARKS.get(name, [] if name in KILLED_INSIDE else [pytest.mark.soak]),
        )
        for name in KINDS
    ]
    return after + inside


@pytest.fixture(params=kinds())
def kind(request: pytest.FixtureRequest, make_folder: Callable[..., Folder]) -> Iterator[Kind]:
    server = request.getfixturevalue("seaweedfs") if request.param == "bucket" else None
    found = KINDS[request.param](make_folder(), server)
    found.prepare()
    yield found
    found.close()


def ids(kind: Kind) -> list[str]:
    return sorted(row[0] for row in kind.folder.rows("shop.sales", "id"))


def test_no_kind_is_left_out() -> None:
    """Whoever adds a kind of source adds it to `KINDS`."""
    built_in = {kind.model_fields["type"].default for kind in BUILT_IN}
    assert KINDS.keys() - PLUGGED_IN.keys() == built_in | {"bucket"}


def test_each_row_once(kind: Kind) -> None:
    """Nothing there; one part; nothing new; more parts, of which one holds no rows; a last one
    without rows does not keep the next from being found."""
    assert kind.folder.run().rows.read == 0
    kind.put([{"id": "a", "content": "one"}, {"id": "b", "content": "one"}])
    first = kind.folder.run()
    assert (first.rows.inserted, first.batches) == (2, 1)
    again = kind.folder.run()
    assert (again.rows.read, again.batches) == (0, 0)
    kind.put([{"id": "c", "content": "one"}])
    kind.put([])
    kind.put([{"id": "d", "content": "one"}])
    more = kind.folder.run()
    assert (more.rows.inserted, more.batches) == (2, 2 if kind.has_steps else 1)
    assert ids(kind) == ["a", "b", "c", "d"]
    kind.put([])
    last = kind.folder.run()
    assert (last.rows.read, last.batches) == (0, 0)
    kind.put([{"id": "e", "content": "one"}])
    assert kind.folder.run().rows.inserted == 1


@pytest.mark.parametrize("kind", kinds(drift=True), indirect=True)
def test_columns_that_come_later(kind: Kind) -> None:
    kind.put([{"id": "a", "content": "one"}])
    kind.folder.run()
    kind.put([{"id": "b", "content": "two", "country": "DE"}])
    kind.folder.run()
    rows = sorted(kind.folder.rows("shop.sales", "id", "content", "country"))
    assert rows == [("a", "one", None), ("b", "two", "DE")]


@pytest.mark.process
@pytest.mark.parametrize(("kind", "step"), kills(), indirect=["kind"])
def test_every_row_once_after_a_kill(kind: Kind, step: Step) -> None:
    """Killed in the second of three batches; the next run goes on behind what is in the table.

    It reads nothing of that again. Keys would hide it: after a commit there are none, where none are needed.
    """
    is_published = step is Step.AFTER_COMMIT
    if is_published and kind.can_append:
        kind.append()
    for name in "abc":
        kind.put([{"id": name, "content": "one"}])
    run_and_kill(kind.folder, step, 2 if kind.has_steps else 1)
    done = 1 + is_published if kind.has_steps else 3 * is_published
    assert ids(kind) == list("abc")[:done]
    result = kind.folder.run()
    assert (result.rows.read, result.rows.inserted) == (3 - done, 3 - done)
    assert result.batches == (3 - done if kind.has_steps else 1 - is_published)
    assert ids(kind) == list("abc")
    assert kind.folder.run().rows.read == 0


def test_looking_remembers_nothing(kind: Kind) -> None:
    kind.put([{"id": "a", "content": "one"}])
    kind.put([{"id": "b", "content": "one"}])
    opened = kind.folder.open()
    assert sorted(opened.read("sales").column("id").to_pylist()) == ["a", "b"]
    assert opened.peek("sales").rows
    assert opened.plan(["sales"])[0].slices
    assert kind.folder.run().rows.inserted == 2
