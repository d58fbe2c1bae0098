"""Every mode killed (signal 9, Java included) at every step: the next run makes what an unharmed one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from esker.events import Step
from esker.ledger.change_log import CHANGESET, OP
from tests.folder import Folder
from tests.scenarios.test_kill import run_and_kill

pytestmark = [pytest.mark.spark, pytest.mark.process]

COLUMNS = ["id", "day", "title"]
FIRST = [(n, "mon", "a") for n in range(8)] + [(1, "mon", "b")]
SECOND = [(n, "tue", "b") for n in range(2, 5)] + [(0, "mon", "a"), (1, "mon", "c"), (9, "tue", "n")]
KEYED: dict[str, dict[str, Any]] = {
    "insert_only": {"key": ["id"]},
    "sync": {"key": ["id"], "guard": {"max_delete": "90%"}},
    "delete_insert": {"key": ["id"]},
    "scd2": {"key": ["id"]},
    "replace": {"key": ["id"]},
}
PLAIN: dict[str, dict[str, Any]] = {
    "append": {},
    "replace": {},
    "replace_partitions": {"partition_by": ["day"]},
}
OF_KEYS = (Step.LOCATED, Step.WRITTEN, Step.BEFORE_LOG, Step.LOGGED)
PUBLISHED = (Step.AFTER_COMMIT, Step.BEFORE_LOG, Step.LOGGED, Step.FINISHED)
"""Steps that a run reaches when its batch is in the table."""


def project(path: Path, mode: str, **keys: Any) -> Folder:
    """A project that has loaded one file, and finds another one in its place."""
    columns = {"id": "bigint", "day": "string", "title": "string"}
    pipeline = Folder.files_pipeline(mode=mode, columns=columns, **keys)
    folder = Folder(path, pipelines={"sales": pipeline})
    folder.write_csv("landing/a.csv", COLUMNS, FIRST)
    folder.run()
    (folder.path / "landing/a.csv").unlink()
    folder.write_csv("landing/b.csv", COLUMNS, SECOND)
    return folder


def seen(folder: Folder) -> list[tuple[Any, ...]]:
    """Return the table, without the moments of versions: two projects have files of different times."""
    columns = [name for name in folder.open().table("shop.sales").columns if not name.startswith("valid_")]
    return folder.rows("shop.sales", *columns)


def kill_and_rerun(path: Path, step: Step, mode: str, keys: dict[str, Any]) -> None:
    """Die at a step; before and after the next run, table and log are those of a project that did not."""
    folder, twin = project(path / "killed", mode, **keys), project(path / "twin", mode, **keys)
    before = seen(twin)
    twin.run()
    after = seen(twin)
    assert before != after
    run_and_kill(folder, step)
    assert seen(folder) == (after if step in PUBLISHED else before)
    assert folder.run().batches == (step not in PUBLISHED)
    assert seen(folder) == after
    if "key" in keys:
        log = ["shop.sales__changes", CHANGESET, OP, *COLUMNS]
        assert folder.rows(*log) == twin.rows(*log)
    assert folder.run().rows.read == 0


def test_sync_killed_before_the_log(tmp_path: Path, spark_running: None) -> None:
    """Killed between table and change log (`make soak` has every step of every mode)."""
    kill_and_rerun(tmp_path, Step.BEFORE_LOG, "sync", {"lane": "small", **KEYED["sync"]})


def test_swap_killed_before_the_commit(tmp_path: Path, spark_running: None) -> None:
    """Killed when everything is written and nothing is visible."""
    kill_and_rerun(tmp_path, Step.BEFORE_COMMIT, "replace_partitions", PLAIN["replace_partitions"])


@pytest.mark.soak
@pytest.mark.parametrize("lane", ["small", "large"])
@pytest.mark.parametrize("mode", KEYED)
@pytest.mark.parametrize("step", Step)
def test_keyed_modes_at_every_step(
    tmp_path: Path, spark_running: None, step: Step, mode: str, lane: str
) -> None:
    """The same at every step of every mode with a key, in both lanes."""
    kill_and_rerun(tmp_path, step, mode, {"lane": lane, **KEYED[mode]})


@pytest.mark.soak
@pytest.mark.parametrize("mode", PLAIN)
@pytest.mark.parametrize("step", [step for step in Step if step not in OF_KEYS])
def test_modes_without_a_key_at_every_step(
    tmp_path: Path, spark_running: None, step: Step, mode: str
) -> None:
    """And of every mode without one."""
    kill_and_rerun(tmp_path, step, mode, PLAIN[mode])
