"""Upserts that are killed, raced, overtaken or compacted under: table and change log stay exact."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from esker.errors import EskerError, Fenced
from esker.events import Step
from esker.ledger.change_log import CHANGESET
from esker.pipeline.result import RunResult
from tests.folder import Folder
from tests.load.works import at
from tests.scenarios.exact_log import exact_log
from tests.scenarios.test_kill import run_and_kill
from tests.servers.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.process]

HEADER = ["id", "at", "title", "deleted"]
BATCHES: dict[str, list[tuple[Any, ...]]] = {
    "a": [(n, 1, "a", "false") for n in range(12)],
    "b": [(n, 2, "b", "false") for n in range(4)]
    + [(n, 2, "", "true") for n in (4, 5)]
    + [(6, 0, "late", "false"), (12, 2, "b", "false"), ("", 2, "no key", "false")],
    "c": [(n, 3, "c", "false") for n in (2, 3, 4, 13)] + [(n, 3, "", "true") for n in (0, 12)],
}
_FIRST = dict.fromkeys(range(12), (1, "a", False))
_SECOND = _FIRST | dict.fromkeys((0, 1, 2, 3, 12), (2, "b", False)) | dict.fromkeys((4, 5), (2, "a", True))
_THIRD = _SECOND | dict.fromkeys((2, 3, 4, 13), (3, "c", False)) | dict.fromkeys((0, 12), (3, "b", True))
STATES = [_FIRST, _SECOND, _THIRD]
"""What the table holds after each batch."""


def keyed_project(path: Path, **keys: Any) -> Folder:
    pipeline = Folder.files_pipeline(
        mode="upsert",
        key=["id"],
        order_by="at",
        columns={"id": "bigint", "at": "bigint", "title": "string", "deleted": "boolean"},
        source={"max_files": 1},
        **{"lane": "small", **keys},
    )
    return Folder(path / "project", pipelines={"sales": pipeline})


def state(folder: Folder) -> dict[int, tuple[int, str, bool]]:
    rows = folder.rows("shop.sales", "id", "at", "title", "deleted")
    found = {row[0]: (row[1], row[2], row[3]) for row in rows}
    assert len(found) == len(rows), f"a key stands twice in {rows}"
    return found


def check_log(folder: Folder, changesets: int) -> None:
    """The log holds changesets 1 to n, one snapshot each, and makes the table."""
    log = exact_log(folder)
    assert log[-1][CHANGESET] == changesets
    replayed = {row["id"]: (row["at"], row["title"], row["deleted"]) for row in log}
    # A touch moves an order value without a change: the log does not tell it.
    assert {key: row[1:] for key, row in replayed.items()} == {
        key: row[1:] for key, row in state(folder).items()
    }


def write(folder: Folder, name: str) -> None:
    folder.write_csv(f"landing/{name}.csv", HEADER, BATCHES[name])


DANGEROUS = [(Step.WRITTEN, 1), (Step.BEFORE_COMMIT, 2), (Step.AFTER_COMMIT, 1), (Step.BEFORE_LOG, 2)]
"""Around the commit, and between change log and quarantine: the first batch writes to both."""
EVERYWHERE = [
    *DANGEROUS,
    *((Step.PLANNED, 1), (Step.FINISHED, 1), (Step.BEFORE_LOG, 1), (Step.BEFORE_LOG, 3)),
    *(
        (step, count)
        for step in Step
        for count in (1, 2)
        if step not in (Step.PLANNED, Step.FINISHED, Step.BEFORE_LOG) and (step, count) not in DANGEROUS
    ),
]


def published_by(step: Step, count: int) -> int:
    """Return how many batches are in the table when a run reaches a step for the `count`-th time."""
    match step:
        case Step.PLANNED:
            return 0
        case Step.FINISHED:
            return 2
        case Step.BEFORE_LOG:
            return (count + 1) // 2
        case Step.AFTER_COMMIT | Step.LOGGED:
            return count
    return count - 1


def kill_and_rerun(folder: Folder, step: Step, count: int, state_database: str) -> None:
    """Load a batch, die at a step of the next two, and look at what the following run makes of it."""
    write(folder, "a")
    folder.run()
    write(folder, "b")
    write(folder, "c")
    run_and_kill(folder, step, count)

    published = published_by(step, count)
    assert state(folder) == STATES[published]  # whole batches only, whatever the instant

    if state_database == "lost":
        folder.lose_state()
    result = folder.run()
    assert result.batches == 2 - published
    assert state(folder) == STATES[2]
    check_log(folder, 3)
    quarantined = folder.rows("shop.sales__quarantine", "changeset", "row")
    assert quarantined == [(2, 8)]
    assert folder.run().rows.read == 0


@pytest.mark.parametrize(
    ("step", "count", "state_database"),
    [(Step.AFTER_COMMIT, 1, "kept"), (Step.BEFORE_LOG, 2, "lost")],
)
def test_upsert_after_a_kill(
    tmp_path: Path, spark_running: None, step: Step, count: int, state_database: str
) -> None:
    """Killed (signal 9, Java included) around the commit; the next run converges, one more does nothing.

    Also when the state database went with the machine: what counts stands in the table.
    """
    kill_and_rerun(keyed_project(tmp_path), step, count, state_database)


@pytest.mark.soak
@pytest.mark.parametrize("state_database", ["kept", "lost"])
@pytest.mark.parametrize("lane", ["small", "large"])
@pytest.mark.parametrize(("step", "count"), EVERYWHERE, ids=[f"{step}-{count}" for step, count in EVERYWHERE])
def test_upsert_after_a_kill_at_every_step(
    tmp_path: Path, spark_running: None, step: Step, count: int, lane: str, state_database: str
) -> None:
    """The same at every step of both batches, in both lanes."""
    kill_and_rerun(keyed_project(tmp_path, lane=lane), step, count, state_database)


# --- two writers ---------------------------------------------------------------------------------


@pytest.fixture(params=["small", "large"])
def loaded(request: pytest.FixtureRequest, tmp_path: Path, spark_running: None) -> Folder:
    """A project that has loaded one batch and has a second one waiting."""
    folder = keyed_project(tmp_path, lane=request.param)
    write(folder, "a")
    folder.run()
    write(folder, "b")
    return folder


def elsewhere(folder: Folder) -> Folder:
    """The same project run by somebody with a state database of his own: no lease keeps them apart."""
    document = {
        **folder.document,
        "state": {"url": f"sqlite:///{folder.path}/other-state.db"},
        "catalog": {
            "type": "sqlite",
            "path": f"{folder.path}/.esker/catalog.db",
            "warehouse": f"{folder.path}/.esker/warehouse",
        },
    }
    other = Folder(folder.path.parent / "elsewhere", **document)
    (other.path / "landing").rmdir()
    (other.path / "landing").symlink_to(folder.path / "landing")
    return other


@pytest.mark.parametrize("step", [Step.STAGED, Step.BEFORE_COMMIT])
def test_zombie_is_fenced(loaded: Folder, step: Step) -> None:
    """A run that wakes up after another took over changes nothing: no row, no log, no quarantine."""
    other = elsewhere(loaded)
    with pytest.raises(Fenced) as caught:
        loaded.run(listen=at(step, other.run))
    assert caught.value.landed == "no"
    assert state(loaded) == STATES[1]
    check_log(loaded, 2)
    assert len(loaded.rows("shop.sales__quarantine")) == 1
    write(loaded, "c")
    assert loaded.run().rows.read == len(BATCHES["c"])
    assert state(loaded) == STATES[2]
    check_log(loaded, 3)


@pytest.mark.soak
@pytest.mark.parametrize("batches", ["c", "cd"])
@pytest.mark.parametrize("step", [step for step in Step if step not in (Step.PLANNED, Step.FINISHED)])
def test_zombie_at_every_step(loaded: Folder, step: Step, batches: str) -> None:
    """A run that sleeps anywhere while another goes on: fenced before its commit, harmless after it."""
    BATCHES["d"], other = [(number, 4, "d", "false") for number in (5, 20)], elsewhere(loaded)

    def go_on() -> None:
        for name in batches:
            write(loaded, name)
        other.run()

    is_published = step in (Step.AFTER_COMMIT, Step.BEFORE_LOG, Step.LOGGED)
    if is_published:
        loaded.run(listen=at(step, go_on))
    else:
        with pytest.raises(Fenced) as caught:
            loaded.run(listen=at(step, go_on))
        assert caught.value.landed == "no"
    expected = STATES[2] | (dict.fromkeys((5, 20), (4, "d", False)) if "d" in batches else {})
    assert state(loaded) == expected
    check_log(loaded, 2 + len(batches))
    assert len(loaded.rows("shop.sales__quarantine")) == 1
    assert loaded.run().rows.read == 0


def test_zombie_between_table_and_log(loaded: Folder) -> None:
    """A run that sleeps after its commit while another goes on: both logged once, in order."""
    other = elsewhere(loaded)

    def go_on() -> None:
        write(loaded, "c")
        other.run()

    loaded.run(listen=at(Step.BEFORE_LOG, go_on))
    assert state(loaded) == STATES[2]
    check_log(loaded, 3)


def test_two_writers_at_once(tmp_path: Path, spark_running: None) -> None:
    """Two processes' worth of runs over the same files: each batch is published by exactly one of them."""
    folder = keyed_project(tmp_path)
    write(folder, "a")
    folder.run()
    other = elsewhere(folder)
    expected = dict(STATES[0])
    for number in range(6):
        rows = [(key, 10 + number, f"r{number}", "false") for key in range(number, number + 4)]
        folder.write_csv(f"landing/r{number}.csv", HEADER, rows)
        expected |= {key: (at_, title, False) for key, at_, title, _ in rows}

    def run(project: Folder) -> RunResult | EskerError:
        try:
            return project.run()
        except EskerError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(run, (folder, other)))
    fenced = [result for result in ended if isinstance(result, EskerError)]
    assert len(fenced) <= 1
    assert all(isinstance(error, Fenced) for error in fenced), ended
    folder.run()
    assert state(folder) == expected
    check_log(folder, 7)


def test_two_pipelines_at_once(tmp_path: Path, spark_running: None) -> None:
    """Two pipelines race for the same keys of one table: the newest version of each wins, one row each."""
    folder = keyed_project(tmp_path)
    folder.document["pipelines"]["more"] = folder.document["pipelines"]["sales"]
    folder.save()
    folder.open().load("sales", [{"id": n, "at": 0, "title": "", "deleted": False} for n in range(8)])
    failures: list[BaseException] = []

    def work(pipeline: str, moments: range) -> None:
        project = folder.open()
        try:
            for moment in moments:
                rows = [{"id": n, "at": moment, "title": f"{moment}", "deleted": False} for n in range(8)]
                project.load(pipeline, rows)
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=work, args=("sales", range(1, 10, 2))),
        threading.Thread(target=work, args=("more", range(2, 10, 2))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert state(folder) == dict.fromkeys(range(8), (9, "9", False))
    changesets = {row[0] for row in folder.rows("shop.sales__changes", CHANGESET)}
    check_log(folder, len(changesets))


# --- compaction ----------------------------------------------------------------------------------


@contextmanager
def compacting(folder: Folder) -> Iterator[list[int]]:
    """Compact and expire the table without a pause, in a thread of its own; yield the rounds that landed."""
    ended = threading.Event()
    landed: list[int] = []
    project = folder.open()

    def compact() -> None:
        while not ended.is_set():
            try:
                for statement in (
                    "rewrite_data_files(table => 'shop.sales', options => map('rewrite-all', 'true'))",
                    "expire_snapshots(table => 'shop.sales', retain_last => 1, "
                    "older_than => TIMESTAMP '2999-01-01 00:00:00')",
                ):
                    project.engine.spark.sql(f"CALL lake.system.{statement}").collect()
                landed.append(1)
            except Exception as error:
                # The compaction may lose its race. It may not be broken in another way.
                if not any(word in str(error) for word in ("onflict", "Cannot commit", "NotFound", "stale")):
                    raise

    thread = threading.Thread(target=compact)
    thread.start()
    try:
        yield landed
    finally:
        ended.set()
        thread.join()


def upsert_while_compacting(folder: Folder, seed: int, rounds: int) -> None:
    generator = random.Random(seed)
    print(f"seed {seed}")
    model: dict[int, tuple[int, str, bool]] = {}
    project = folder.open()
    project.load("sales", [{"id": 99, "at": 0, "title": "first", "deleted": False}])
    model[99] = (0, "first", False)
    changesets = 1
    with compacting(folder) as landed:
        for moment in range(1, rounds + 1):
            if moment % 4 == 0:
                # Batches without a pause between them are faster than any compaction of the same files.
                landed.clear()
                wait_until(lambda: bool(landed), "a compaction")
            keys = generator.sample(range(12), 5)
            gone = {key for key in keys if generator.random() < 0.3}
            rows = [{"id": key, "at": moment, "title": f"{moment}", "deleted": key in gone} for key in keys]
            result = project.load("sales", rows)
            changesets = result.changeset or changesets
            for key in keys:
                if key not in gone:
                    model[key] = (moment, f"{moment}", False)
                elif key in model and not model[key][2]:
                    model[key] = (moment, model[key][1], True)
    assert landed, "no compaction landed: the test proved nothing"
    assert state(folder) == model
    check_log(folder, changesets)


def test_upserts_under_continuous_compaction(tmp_path: Path, spark_running: None) -> None:
    """No update is lost and no row comes back while another engine rewrites the files all the time."""
    upsert_while_compacting(keyed_project(tmp_path), seed=11, rounds=8)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("version", [2, 3])
def test_upserts_under_continuous_compaction_at_length(
    tmp_path: Path, spark_running: None, seed: int, version: int
) -> None:
    """The same for longer, on both format versions."""
    upsert_while_compacting(keyed_project(tmp_path, format_version=version), seed=seed, rounds=100)
