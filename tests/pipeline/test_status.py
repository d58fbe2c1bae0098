"""What `esker status` knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from esker.errors import SourceNotFound
from esker.ledger.leases import held
from esker.ledger.offsets import Offset, store_offset
from esker.ledger.run_id import new_run_id
from esker.ledger.runs import record_end, record_start
from esker.ledger.state import State
from esker.pipeline.status import consumers_status, project_status
from esker.project import Project, load_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "esker.yml").write_text(
        "project: shop\ndefaults: {source: {type: files, path: a, format: csv}}\n"
        "pipelines: {sales: {table: s.a, every: 1h}, rates: {table: s.b}}\n"
    )
    return load_project(tmp_path)


@pytest.fixture
def state(project: Project) -> Iterator[State]:
    with closing(State.open(project)) as opened:
        yield opened


def test_a_project_that_never_ran(project: Project, state: State) -> None:
    """Every pipeline is there, also before its first run."""
    found = project_status(project, state, state.now())
    assert [(line.pipeline, line.table, line.status, line.is_due) for line in found] == [
        ("sales", "s.a", "never ran", True),
        ("rates", "s.b", "never ran", False),
    ]
    assert found[0].as_json() == {
        "pipeline": "sales",
        "table": "s.a",
        "status": "never ran",
        "due": True,
        "gone": False,
        "hold": None,
        "missing_windows": None,
        "last_run": None,
        "last_success": None,
    }


def test_a_failure_after_a_success_shows_both(project: Project, state: State) -> None:
    """The last run says why it failed, the last success what it loaded."""
    good, bad = new_run_id(), new_run_id()
    record_start(state, "shop", "sales", good)
    record_end(state, good, "succeeded", {"rows": {"inserted": 3}}, None)
    record_start(state, "shop", "sales", bad)
    record_end(state, bad, "failed", {}, SourceNotFound("sales", "a", "b").as_json())
    sales, rates = (line.as_json() for line in project_status(project, state, state.now()))
    assert (sales["status"], sales["due"]) == ("failed", False)
    assert sales["last_run"]["run_id"] == bad
    assert sales["last_run"]["error"]["code"] == "ESK-SOURCE-001"
    assert sales["last_success"]["run_id"] == good
    assert sales["last_success"]["result"] == {"rows": {"inserted": 3}}
    assert rates["status"] == "never ran"
    assert json.loads(json.dumps(sales)) == sales


def test_lag_is_of_all_pipelines_into_the_table(tmp_path: Path) -> None:
    """Whoever published last counts, also a run that failed later; what nobody knows is not nothing."""
    (tmp_path / "esker.yml").write_text(
        "project: shop\n"
        "defaults: {source: {type: files, path: a, format: csv}, mode: upsert, key: [id]}\n"
        "pipelines: {sales: {table: s.a}, late: {table: s.a}, rates: {table: s.b}}\n"
        "consumers: {news: {from: sales, to: {type: files, path: out}}}\n"
    )
    project = load_project(tmp_path)

    def ran(pipeline: str, status: str, changeset: int | None) -> None:
        run = new_run_id()
        record_start(history, "shop", pipeline, run)
        record_end(history, run, status, {"changeset": changeset}, None)

    def lag() -> int | None:
        [news] = consumers_status(project, history)
        return news.lag

    with closing(State.open(project)) as history:
        assert lag() is None
        ran("sales", "succeeded", 4)
        assert lag() == 4
        with held(history, "shop/consumer/news") as lease:
            store_offset(history, "shop", "news", lease, None, Offset("uuid", 4, None, None, 0))
        assert lag() == 0
        ran("rates", "succeeded", 9)  # into another table
        assert lag() == 0
        ran("late", "succeeded", 5)
        assert lag() == 1
        ran("late", "failed", 7)
        ran("late", "failed", None)
        assert lag() == 3
