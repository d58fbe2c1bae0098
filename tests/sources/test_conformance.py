"""What must be true of every kind of source."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from _pytest.mark import ParameterSet

from esker.events import Step
from tests.folder import Folder
from tests.scenarios.test_kill import run_and_kill
from tests.sources.kinds import KINDS, Kind

pytestmark = pytest.mark.spark


def kinds(*, drift: bool = False) -> list[ParameterSet]:
    """Return all kinds. What a bucket does otherwise than a disk is tested on its own; this is long."""
    marks = {"bucket": [pytest.mark.server, pytest.mark.soak]}
    names = [name for name, kind in KINDS.items() if kind.can_drift or not drift]
    return [pytest.param(name, marks=marks.get(name, [])) for name in names]


@pytest.fixture(params=kinds())
def kind(request: pytest.FixtureRequest, make_folder: Callable[..., Folder]) -> Iterator[Kind]:
    server = request.getfixturevalue("seaweedfs") if request.param == "bucket" else None
    found = KINDS[request.param](make_folder(), server)
    found.prepare()
    yield found
    found.close()


def ids(kind: Kind) -> list[str]:
    return sorted(row[0] for row in kind.folder.rows("shop.sales", "id"))


def test_each_row_once(kind: Kind) -> None:
    """Nothing there; one part; nothing new; more parts, of which one holds nothing new; nothing new."""
    assert kind.folder.run().rows.read == 0
    kind.put([{"id": "a", "content": "one"}, {"id": "b", "content": "one"}])
    first = kind.folder.run()
    assert (first.rows.inserted, first.batches) == (2, 1)
    again = kind.folder.run()
    assert (again.rows.read, again.batches) == (0, 0)
    kind.put([{"id": "c", "content": "one"}])
    kind.put([{"id": "d", "content": "one"}])
    more = kind.folder.run()
    assert (more.rows.inserted, more.batches) == (2, 2 if kind.has_steps else 1)
    assert ids(kind) == ["a", "b", "c", "d"]
    assert kind.folder.run().rows.read == 0


@pytest.mark.parametrize("kind", kinds(drift=True), indirect=True)
def test_columns_that_come_later(kind: Kind) -> None:
    kind.put([{"id": "a", "content": "one"}])
    kind.folder.run()
    kind.put([{"id": "b", "content": "two", "country": "DE"}])
    kind.folder.run()
    rows = sorted(kind.folder.rows("shop.sales", "id", "content", "country"))
    assert rows == [("a", "one", None), ("b", "two", "DE")]


@pytest.mark.process
@pytest.mark.parametrize("step", [pytest.param(Step.RECORDED, marks=pytest.mark.soak), Step.AFTER_COMMIT])
def test_every_row_once_after_a_kill(kind: Kind, step: Step) -> None:
    """Killed in the second of three batches; the next run goes on behind what is in the table."""
    for name in "abc":
        kind.put([{"id": name, "content": "one"}])
    run_and_kill(kind.folder, step, 2 if kind.has_steps else 1)
    is_published = step is Step.AFTER_COMMIT
    done = 1 + is_published if kind.has_steps else 3 * is_published
    assert ids(kind) == list("abc")[:done]
    result = kind.folder.run()
    assert result.rows.inserted == 3 - done
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
