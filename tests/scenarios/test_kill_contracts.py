"""Audits, bad rows and what becomes of them, killed (signal 9, Java included): done or not done, once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from esker.errors import Held, NoHold, NotInQuarantine
from esker.events import Step
from esker.ledger.change_log import CHANGESET, OP
from esker.ledger.state import State
from esker.pipeline.quarantine import Choice
from esker.pipeline.status import project_status
from tests.contracts.folder import change_contract, contract, contract_folder
from tests.folder import Folder
from tests.scenarios.exact_quarantine import resolved, waiting
from tests.scenarios.killed_call import Swap
from tests.scenarios.test_kill import ROOT, wait_for_end

pytestmark = [pytest.mark.spark, pytest.mark.process]

BRANCH = "esker_staged_sales"
HEADER = ["id", "amount", "country"]
FIRST = [(1, 10, "DE"), (2, 20, "DE"), (3, 30, "FR"), (4, -4, "DE")]
SECOND = [(2, 21, "DE"), (5, 50, "IT"), (6, -6, "DE"), (7, 70, "it")]
NEGATIVE = Choice(rule="amount.minimum")
"""The bad rows 4 and 6; row 7 breaks another rule."""
PROPERTIES = """
- {name: id, logicalType: integer, required: true}
- {name: amount, logicalType: integer, logicalTypeOptions: {minimum: 0}}
- {name: country, logicalType: string, logicalTypeOptions: {pattern: "^[A-Z]{2}$"}}
"""
AUDIT = "- {type: sql, name: total, query: 'SELECT sum(amount) FROM ${table}', mustBeLessOrEqualTo: 100}"
PASSING = AUDIT.replace("100", "1000")
MODES: dict[str, dict[str, Any]] = {
    "append": {},
    "small": {"mode": "upsert", "key": ["id"], "lane": "small"},
    "large": {"mode": "upsert", "key": ["id"], "lane": "large"},
}

Point = tuple[str, int]
"""Where a process dies: at a step of a load or around a swap, and the how many-th."""
Rows = list[tuple[int, int]]

ON_BRANCH: Point = (Swap.AFTER, 2)
"""The files of a batch are recorded, the batch is staged on its branch, and no audit has looked at it."""
PUBLISHED = (Step.AFTER_COMMIT, Step.BEFORE_LOG, Step.LOGGED, Step.FINISHED)
"""Steps that a load reaches when its batch is in the table."""


def steps(mode: str, sides: int) -> list[Point]:
    """Return the points of a load that fills so many side tables."""
    of_keys = () if mode == "append" else (Step.LOCATED, Step.WRITTEN)
    before = (Step.PLANNED, Step.READ, Step.STAGED, Step.RECORDED, *of_keys, Step.BEFORE_COMMIT)
    return [
        *((step, 1) for step in (*before, Step.AFTER_COMMIT)),
        *((Step.BEFORE_LOG, number + 1) for number in range(sides)),
        *((Step.LOGGED, 1), (Step.FINISHED, 1)),
    ]


def named(points: list[tuple[str, Point]]) -> list[Any]:
    return [pytest.param(mode, point, id=f"{mode}-{point[0]}-{point[1]}") for mode, point in points]


def project(path: Path, mode: str, audit: str = "") -> Folder:
    """A project that has loaded one file, and finds a second one."""
    folder = contract_folder(
        lambda **keys: Folder(path / "project", **keys), contract(PROPERTIES, audit), **MODES[mode]
    )
    folder.write_csv("landing/a.csv", HEADER, FIRST)
    folder.run()
    folder.write_csv("landing/b.csv", HEADER, SECOND)
    return folder


def tables(mode: str) -> tuple[Rows, Rows]:
    """Return what the table holds after the first file, and after both."""
    first = [(1, 10), (2, 20), (3, 30)]
    if mode == "append":
        return first, [*first, (2, 21), (5, 50)]
    return first, [(1, 10), (2, 21), (3, 30), (5, 50)]


def call_and_kill(folder: Folder, point: Point, act: str = "run", rule: str | None = None) -> None:
    """Do something in a process group of its own that dies at a point."""
    command = [sys.executable, "-m", "tests.scenarios.killed_call", str(folder.path), point[0], str(point[1])]
    process = subprocess.Popen(
        [*command, act, *([rule] if rule else [])],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output, _ = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL, output.decode()
    wait_for_end(process.pid)


def branches(folder: Folder) -> list[str]:
    frame = folder.open().engine.spark.sql("SELECT name FROM lake.shop.sales.refs WHERE type = 'BRANCH'")
    return sorted(row[0] for row in frame.collect())


def held(folder: Folder) -> str | None:
    """Return what waits for a person."""
    opened = folder.open().project
    with closing(State.open(opened)) as state:
        hold = project_status(opened, state, state.now())[0].hold
    return hold.message if hold else None


def rows(folder: Folder) -> Rows:
    return [(row[0], row[1]) for row in folder.rows("shop.sales", "id", "amount")]


def check(folder: Folder, mode: str, expected: Rows, bad: list[int], changesets: int | None) -> None:
    """The table holds these rows and the quarantine these, each once; all that stands beside them agrees."""
    assert rows(folder) == sorted(expected, key=repr)
    assert waiting(folder) == bad
    assert branches(folder) == ["main"]
    if mode != "append":
        check_log(folder, changesets)
    measured = folder.rows("shop.sales__quality", "metric", "changeset")
    counted = [changeset for metric, changeset in measured if metric == "record_count"]
    assert len(set(counted)) == len(counted)


def check_log(folder: Folder, changesets: int | None) -> None:
    """The log has every changeset in one snapshot, each change once, and makes the table."""
    spark = folder.open().engine.spark
    told = spark.sql("SELECT summary FROM lake.shop.sales__changes.snapshots ORDER BY committed_at").collect()
    assert [int(row.summary["esker.changeset"]) for row in told] == list(range(1, (changesets or 0) + 1))
    log = folder.rows("shop.sales__changes", CHANGESET, "id", "amount", OP)
    assert len({row[:2] for row in log}) == len(log)
    assert {row[3] for row in log} <= {"insert", "update"}
    in_order = sorted(log)
    assert sorted({row[1]: row[2] for row in in_order}.items(), key=repr) == rows(folder)


# --- runs with bad rows and audits ---------------------------------------------------------------


def kill_run(folder: Folder, mode: str, point: Point, *, audited: bool) -> None:
    """Die in a run, look at what is there, and run again."""
    before, after = tables(mode)
    call_and_kill(folder, point)
    is_published = point[0] in PUBLISHED
    assert rows(folder) == sorted(after if is_published else before, key=repr)
    is_staged = audited and point in (ON_BRANCH, (Step.BEFORE_COMMIT, 1))
    assert branches(folder) == ([BRANCH, "main"] if is_staged else ["main"])
    assert waiting(folder) == ([4, 6, 7] if is_published else [4])  # also before the next run

    result = folder.run()
    assert result.batches == (not is_published)
    check(folder, mode, after, [4, 6, 7], changesets=2)
    assert resolved(folder) == []
    assert folder.run().rows.read == 0


def test_audited_run_that_is_killed(tmp_path: Path, spark_running: None) -> None:
    """Between change log and quarantine: good rows are in the table and bad ones in the quarantine, once."""
    kill_run(project(tmp_path, "small", PASSING), "small", (Step.BEFORE_LOG, 2), audited=True)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("mode", "point"),
    named(
        [
            (mode, point)
            for mode in MODES
            for point in (*steps(mode, sides=2 if mode == "append" else 3), ON_BRANCH)
        ]
    ),
)
def test_audited_run_that_is_killed_at_every_step(
    tmp_path: Path, spark_running: None, mode: str, point: Point
) -> None:
    """The same at every step."""
    kill_run(project(tmp_path, mode, PASSING), mode, point, audited=True)


@pytest.mark.soak
def test_run_with_bad_rows_that_is_killed(tmp_path: Path, spark_running: None) -> None:
    """Killed when the batch is published and its bad rows are on their way to the quarantine."""
    kill_run(project(tmp_path, "append"), "append", (Step.AFTER_COMMIT, 1), audited=False)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("mode", "point"),
    named([(mode, point) for mode in MODES for point in steps(mode, sides=2 if mode == "append" else 3)]),
)
def test_run_with_bad_rows_that_is_killed_at_every_step(
    tmp_path: Path, spark_running: None, mode: str, point: Point
) -> None:
    """The same at every step."""
    kill_run(project(tmp_path, mode), mode, point, audited=False)


# --- batches that are held -----------------------------------------------------------------------


def test_held_run_that_is_killed(tmp_path: Path, spark_running: None) -> None:
    """Killed between staging and the question: the next run asks it, and what is approved is loaded once."""
    folder = project(tmp_path, "small", AUDIT)
    before, after = tables("small")
    call_and_kill(folder, ON_BRANCH)
    assert (rows(folder), branches(folder), held(folder)) == (before, [BRANCH, "main"], None)
    with pytest.raises(NoHold):
        folder.open().approve("sales")
    with pytest.raises(Held, match='audit "total" is 111'):
        folder.run()
    assert (rows(folder), branches(folder), waiting(folder)) == (before, [BRANCH, "main"], [4])
    assert folder.open().approve("sales").rows.inserted == 1
    check(folder, "small", after, [4, 6, 7], changesets=2)
    assert folder.run().rows.read == 0


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("point", [ON_BRANCH, (Step.FINISHED, 1)], ids=["on_branch", "finished"])
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_held_run_that_is_killed_and_decided(
    tmp_path: Path, spark_running: None, mode: str, point: Point, decision: str
) -> None:
    """Approved or rejected after a kill, with nothing left of the other."""
    folder = project(tmp_path, mode, AUDIT)
    before, after = tables(mode)
    call_and_kill(folder, point)
    if point == ON_BRANCH:
        with pytest.raises(Held):
            folder.run()
    assert rows(folder) == before
    if decision == "approve":
        assert folder.open().approve("sales").status == "succeeded"
        check(folder, mode, after, [4, 6, 7], changesets=2)
    else:
        folder.open().reject("sales")
        check(folder, mode, before, [4], changesets=1)
    assert held(folder) is None
    assert folder.run().rows.read == 0


def kill_approval(folder: Folder, mode: str, point: Point) -> None:
    """Die while a held batch is approved; approve again what still waits, and nothing else."""
    before, after = tables(mode)
    with pytest.raises(Held):
        folder.run()
    call_and_kill(folder, point, "approve")
    is_published = point[0] in PUBLISHED
    assert rows(folder) == sorted(after if is_published else before, key=repr)
    if is_published:
        # Nobody has seen what comes now, though it is no worse than what was approved.
        folder.write_csv("landing/c.csv", HEADER, [(5, 49, "IT") if mode != "append" else (9, -0, "IT")])
        with pytest.raises(NoHold):
            folder.open().approve("sales")
        assert rows(folder) == sorted(after, key=repr)
        (folder.path / "landing/c.csv").unlink()
        folder.run()
    else:
        assert folder.open().approve("sales").status == "succeeded"
    check(folder, mode, after, [4, 6, 7], changesets=2)
    assert folder.run().rows.read == 0
    assert held(folder) is None


@pytest.mark.soak
@pytest.mark.parametrize(
    ("mode", "point"),
    named(
        [
            (mode, point)
            for mode in ("append", "small")
            for point in (
                ON_BRANCH,
                (Step.BEFORE_COMMIT, 1),
                (Step.AFTER_COMMIT, 1),
                (Step.BEFORE_LOG, 2),
                (Step.FINISHED, 1),
            )
        ]
    ),
)
def test_approval_that_is_killed(tmp_path: Path, spark_running: None, mode: str, point: Point) -> None:
    """An approval counts for the batch that was shown, also when nobody heard that it is loaded."""
    kill_approval(project(tmp_path, mode, AUDIT), mode, point)


@pytest.mark.soak
@pytest.mark.parametrize(
    "point",
    [(Swap.BEFORE, 1), (Swap.AFTER, 1), (Swap.AFTER, 2)],
    ids=["before_commit", "after_commit", "branch_dropped"],
)
def test_rejection_that_is_killed(tmp_path: Path, spark_running: None, point: Point) -> None:
    """Whoever rejects again and runs has neither the batch nor its branch."""
    folder = project(tmp_path, "small", AUDIT)
    before, _ = tables("small")
    with pytest.raises(Held):
        folder.run()
    call_and_kill(folder, point, "reject")
    assert rows(folder) == before
    with suppress(NoHold):  # it may be done already
        folder.open().reject("sales")
    assert folder.run().rows.read == 0
    check(folder, "small", before, [4], changesets=1)
    assert held(folder) is None
    folder.write_csv("landing/c.csv", HEADER, [(9, 1, "DE")])
    assert folder.run().rows.inserted == 1
    check(folder, "small", [*before, (9, 1)], [4], changesets=2)


def test_audits_that_are_gone_leave_no_branch(tmp_path: Path, spark_running: None) -> None:
    """A batch was staged, and its contract has no audit any more: it is loaded, and its branch goes."""
    folder = project(tmp_path, "small", AUDIT)
    with pytest.raises(Held):
        folder.run()
    change_contract(folder, AUDIT, "[]")
    assert folder.run().rows.inserted == 1
    check(folder, "small", tables("small")[1], [4, 6, 7], changesets=2)
    assert held(folder) is None


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
def test_audits_that_are_gone_after_a_kill(tmp_path: Path, spark_running: None, mode: str) -> None:
    """The same of a batch whose run was killed."""
    folder = project(tmp_path, mode, PASSING)
    call_and_kill(folder, ON_BRANCH)
    change_contract(folder, PASSING, "[]")
    assert folder.run().batches == 1
    check(folder, mode, tables(mode)[1], [4, 6, 7], changesets=2)


# --- replays -------------------------------------------------------------------------------------


def quarantined(path: Path, mode: str, audit: str = "") -> Folder:
    """A project with the bad rows 4, 6 and 7 in quarantine; by today's contract only 7 is bad."""
    folder = project(path, mode, audit)
    folder.run()
    change_contract(folder, "{minimum: 0}", "{minimum: -100}")
    return folder


def kill_replay(folder: Folder, mode: str, point: Point) -> None:
    """Die in a replay, and replay again."""
    _, loaded = tables(mode)
    everything = [*loaded, (4, -4), (6, -6)]
    call_and_kill(folder, point, "replay")
    is_published = point[0] in PUBLISHED
    assert rows(folder) == sorted(everything if is_published else loaded, key=repr)
    assert waiting(folder) == ([7] if is_published else [4, 6, 7])

    result = folder.open().replay("sales")
    assert (result.status, result.rows.quarantined) == ("succeeded", 1)
    assert result.rows.inserted == (0 if is_published else 2)
    assert result.changeset == (4 if is_published else 3)
    check(folder, mode, everything, [7], changesets=result.changeset)
    # Row 7 is bad again each time that it is replayed: it waits as another row.
    again = [(7, "replayed")] if is_published else []
    assert resolved(folder) == [(4, "replayed"), (6, "replayed"), (7, "replayed"), *again]
    assert folder.run().rows.read == 0
    with pytest.raises(NotInQuarantine):
        folder.open().replay("sales", NEGATIVE)


def test_replay_that_is_killed(tmp_path: Path, spark_running: None) -> None:
    """Killed between change log and quarantine: what was replayed is loaded, and does not wait."""
    kill_replay(quarantined(tmp_path, "small", PASSING), "small", (Step.BEFORE_LOG, 2))


@pytest.mark.soak
@pytest.mark.parametrize("audit", ["", PASSING], ids=["plain", "audited"])
@pytest.mark.parametrize(
    ("mode", "point"),
    named([(mode, point) for mode in MODES for point in steps(mode, sides=2 if mode == "append" else 3)]),
)
def test_replay_that_is_killed_at_every_step(
    tmp_path: Path, spark_running: None, mode: str, point: Point, audit: str
) -> None:
    """The same at every step."""
    kill_replay(quarantined(tmp_path, mode, audit), mode, point)


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
def test_replay_that_is_killed_on_its_branch(tmp_path: Path, spark_running: None, mode: str) -> None:
    """Killed when the rows are staged and no audit has looked at them. No file is recorded for a replay."""
    kill_replay(quarantined(tmp_path, mode, PASSING), mode, (Swap.AFTER, 1))


@pytest.mark.soak
def test_rows_of_a_killed_replay_cannot_be_discarded(tmp_path: Path, spark_running: None) -> None:
    """They are in the table, though the quarantine does not know yet."""
    folder = quarantined(tmp_path, "append")
    call_and_kill(folder, (Step.AFTER_COMMIT, 1), "replay")
    with pytest.raises(NotInQuarantine):
        folder.open().discard("sales", NEGATIVE)
    check(folder, "append", [*tables("append")[1], (4, -4), (6, -6)], [7], changesets=3)
    assert resolved(folder) == [(4, "replayed"), (6, "replayed"), (7, "replayed")]


# --- rows that are left for good -----------------------------------------------------------------


def kill_discard(folder: Folder, mode: str, point: Point) -> None:
    """Die while rows are left for good, and leave them again."""
    _, loaded = tables(mode)
    call_and_kill(folder, point, "discard", NEGATIVE.rule)
    assert rows(folder) == sorted(loaded, key=repr)
    if point == (Swap.BEFORE, 1):
        assert folder.open().discard("sales", NEGATIVE) == 2
    else:
        with pytest.raises(NotInQuarantine):
            folder.open().discard("sales", NEGATIVE)
    check(folder, mode, loaded, [7], changesets=3)
    with pytest.raises(NotInQuarantine):
        folder.open().replay("sales", NEGATIVE)  # though they are good by now
    assert resolved(folder) == [(4, "discarded"), (6, "discarded")]
    assert folder.run().rows.read == 0
    folder.write_csv("landing/c.csv", HEADER, [(9, 9, "DE")])
    assert folder.run().changeset == 4
    check(folder, mode, [*loaded, (9, 9)], [7], changesets=4)
    assert resolved(folder) == [(4, "discarded"), (6, "discarded")]


@pytest.mark.soak
def test_discard_that_is_killed(tmp_path: Path, spark_running: None) -> None:
    """Killed when it is published and the quarantine does not know it yet."""
    kill_discard(quarantined(tmp_path, "small"), "small", (Swap.AFTER, 1))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("mode", "point"),
    named(
        [
            *(("append", (swap, count)) for count in (1, 2) for swap in Swap),
            *(("small", (swap, count)) for count in (1, 2, 3) for swap in Swap),
        ]
    ),
)
def test_discard_that_is_killed_at_every_swap(
    tmp_path: Path, spark_running: None, mode: str, point: Point
) -> None:
    """Before and after table, change log and quarantine are told."""
    kill_discard(quarantined(tmp_path, mode), mode, point)


# --- at random instants --------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mode", ["append", "small"])
def test_kills_at_random_instants_of_a_story(
    tmp_path: Path, spark_running: None, mode: str, seed: int
) -> None:
    """Runs, replays and discards die at instants that nobody chose; each row is at one place, once."""
    generator = random.Random(seed)
    print(f"seed {seed}")
    folder = contract_folder(
        lambda **keys: Folder(tmp_path / "project", **keys), contract(PROPERTIES, PASSING), **MODES[mode]
    )
    loaded: Rows = []
    bad: list[int] = []
    for first in range(0, 40, 10):
        good = [(first + place, 1) for place in range(4)]
        negative = [(first + place, -1) for place in range(4, 6)]
        folder.write_csv(
            f"landing/{first}.csv",
            HEADER,
            [*((*row, "DE") for row in (*good, *negative)), (first + 6, 1, "it")],
        )
        die(folder, generator, "run")
        folder.run()
        loaded, bad = [*loaded, *good], [*bad, *(key for key, _ in negative), first + 6]
        assert (rows(folder), waiting(folder)) == (sorted(loaded, key=repr), sorted(bad))
        act = generator.choice(["replay", "discard"])
        if act == "replay":
            change_contract(folder, "{minimum: 0}", "{minimum: -100}")
            loaded += negative
        die(folder, generator, act)
        with suppress(NotInQuarantine):  # it may be done already
            if act == "replay":
                folder.open().replay("sales", NEGATIVE)
            else:
                folder.open().discard("sales", NEGATIVE)
        if act == "replay":
            change_contract(folder, "{minimum: -100}", "{minimum: 0}")
        bad = [key for key in bad if key % 10 == 6]
        assert (rows(folder), waiting(folder)) == (sorted(loaded, key=repr), bad)
        assert len(resolved(folder)) == (first // 10 + 1) * 2
    result = folder.run()
    assert result.rows.read == 0
    check(folder, mode, loaded, bad, changesets=result.changeset)


def die(folder: Folder, generator: random.Random, act: str) -> None:
    seconds = f"{generator.uniform(0, 8):.3f}"
    call_and_kill(folder, (seconds, 1), act, None if act == "run" else NEGATIVE.rule)
