"""Positions of empty slices: good for exactly one ledger entry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from esker.ledger.entry import LedgerEntry
from esker.ledger.remembered import recall, remember
from esker.ledger.state import State
from tests.ledger.states import project_in

ENTRY = LedgerEntry(
    position={"files": 1},
    changeset=1,
    run="r",
    writer="w",
    epoch=1,
    snapshot=5,
    sequence=1,
    project="shop",
    source="files",
)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    with closing(State.open(project_in(tmp_path))) as opened:
        yield opened


def test_without_a_memory_the_ledger_decides(state: State) -> None:
    """A lost database costs a second look at an empty slice, nothing else."""
    assert recall(state, "shop", "sales", None) is None
    assert recall(state, "shop", "sales", ENTRY) == {"files": 1}


@pytest.mark.parametrize("entry", [None, ENTRY])
def test_a_remembered_position_is_used(state: State, entry: LedgerEntry | None) -> None:
    """The next run goes on behind the empty slice; the newest memory counts."""
    remember(state, "shop", "sales", entry, {"files": 2})
    remember(state, "shop", "sales", entry, {"files": 3})
    assert recall(state, "shop", "sales", entry) == {"files": 3}


@pytest.mark.parametrize(
    "change",
    [
        {"position": {"files": 9}},
        {"changeset": 2},
        {"run": "x"},
        {"writer": "x"},
        {"epoch": 2},
        {"snapshot": 6},
        {"sequence": 2},
        {"project": "x"},
        {"source": "x"},
    ],
)
def test_a_memory_of_another_entry_means_nothing(state: State, change: dict[str, Any]) -> None:
    """After a publish, a restore or a rollback the ledger decides, whatever was remembered before."""
    remember(state, "shop", "sales", ENTRY, {"files": 2})
    other = replace(ENTRY, **change)
    assert recall(state, "shop", "sales", other) == other.position
    assert recall(state, "shop", "sales", None) is None


def test_memories_are_per_pipeline_and_project(state: State) -> None:
    """Pipelines with equal entries do not see each other's positions."""
    remember(state, "shop", "sales", None, {"files": 2})
    assert recall(state, "shop", "rates", None) is None
    assert recall(state, "mart", "sales", None) is None
