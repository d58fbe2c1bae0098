"""Runs: what they give back, and how they keep out of each other's way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from esker.engine.session import Engine
from esker.errors import CatalogUnreachable, ClusterUnreachable, StoreNotWritable
from esker.events import Event, Progressed, Reached, Step
from esker.ledger.leases import held
from esker.ledger.runs import latest_runs
from esker.ledger.state import State
from esker.pipeline.new import run_pipelines
from esker.project import load_project
from tests.command import esker
from tests.folder import Folder

pytestmark = pytest.mark.spark


def test_result_has_the_fields_of_the_json(folder: Folder) -> None:
    """`read` is the sum of all other counts; the position names where the run began and ended."""
    folder.write_csv("landing/a.csv", ["id"], [(1,), (2,)])
    document = folder.run().as_json()
    counts = document["rows"]
    assert counts.pop("read") == sum(counts.values()) == 2
    assert document["status"] == "succeeded"
    assert document["position"]["from"] is None
    assert document["position"]["to"]["files"] == 1
    assert document["bytes_written"] > 0
    assert document["seconds"] > 0
    assert folder.run().as_json()["position"]["from"] == document["position"]["to"]


def test_one_bad_pipeline_does_not_stop_the_others(folder: Folder) -> None:
    """Scenario 30: the others load, the report names the bad one."""
    folder.document["pipelines"]["bad"] = Folder.files_pipeline("bad/*.csv", table="shop.bad")
    folder.document["pipelines"]["after"] = Folder.files_pipeline("after/*.csv", table="shop.after")
    folder.save()
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.write_csv("after/a.csv", ["id"], [(2,)])
    report = folder.open().run_all()
    assert [(r.pipeline, r.status) for r in report.pipelines] == [
        ("sales", "succeeded"),
        ("bad", "failed"),
        ("after", "succeeded"),
    ]
    assert (report.status, report.exit_status) == ("failed", 4)
    assert folder.rows("shop.after") == [(2,)]


def test_run_that_finds_the_lease_taken_is_skipped(folder: Folder) -> None:
    """Scenario 11: runs of one pipeline do not pile up; the second says who holds it and does nothing."""
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    opened = folder.open()
    with held(opened.state, "shop/sales"):
        result = opened.run("sales")
    assert result.status == "skipped"
    assert "another run is active: process" in result.notes[0]
    assert opened.run("sales").rows.inserted == 1


@pytest.mark.process
def test_skipped_run_says_so_once_and_starts_no_spark(tmp_path: Path) -> None:
    """The lease is asked for before Spark starts: a run that has nothing to do costs no JVM."""
    folder = Folder(tmp_path / "project")
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    with closing(State.open(load_project(folder.path))) as state, held(state, "shop/sales"):
        answer = esker(folder.path, "run")
    assert answer.status == 0, answer.stdout + answer.stderr
    assert (answer.stdout + answer.stderr).count("another run is active") == 1
    assert not (folder.path / ".esker" / "logs").exists()


@pytest.mark.parametrize("step", [Step.PLANNED, Step.STAGED, Step.FINISHED])
def test_a_mistake_in_one_run_does_not_stop_the_others(folder: Folder, step: Step) -> None:
    """An exception that nobody foresaw fails its own pipeline, with a report; the next one loads."""
    folder.document["pipelines"]["after"] = Folder.files_pipeline("after/*.csv", table="shop.after")
    folder.save()
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.write_csv("after/a.csv", ["id"], [(2,)])

    def listen(event: Event) -> None:
        if isinstance(event, Reached) and (event.pipeline, event.step) == ("sales", step):
            raise RuntimeError("nobody thought of this")

    report = folder.open().run_all(listen=listen)
    assert [(r.pipeline, r.status) for r in report.pipelines] == [("sales", "failed"), ("after", "succeeded")]
    error = report.pipelines[0].error
    assert error is not None
    assert (error.code, report.exit_status) == ("ESK-RUN-003", 1)
    assert "nobody thought of this" in error.message + error.reason
    assert folder.rows("shop.after") == [(2,)]


def test_spark_that_does_not_start_is_tried_once(tmp_path: Path) -> None:
    """Every pipeline fails with the same error, and each failure is in the history."""
    pipelines = {name: Folder.files_pipeline(table=f"shop.{name}") for name in ("sales", "after")}
    folder = Folder(tmp_path / "project", pipelines=pipelines)
    tries = 0

    def start() -> Engine:
        nonlocal tries
        tries += 1
        raise ClusterUnreachable("spark://nowhere:7077", "nobody is there")

    project = load_project(folder.path)
    with closing(State.open(project)) as state:
        report = run_pipelines(project, start, state, ["sales", "after"])
        kept = [latest_runs(state, "shop", name)[0].status for name in pipelines]
    assert (tries, report.exit_status, kept) == (1, 4, ["failed", "failed"])


def test_history_tells_how_runs_ended(folder: Folder) -> None:
    """Good and bad runs are in the history with their result or error."""
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    folder.write("landing/a.csv", "id\n1\n2\n")
    with pytest.raises(Exception, match="changed"):
        folder.run()
    failed, succeeded = latest_runs(folder.open().state, "shop", "sales", limit=5)
    assert (failed.status, succeeded.status) == ("failed", "succeeded")
    assert failed.error is not None
    assert failed.error["code"] == "ESK-SOURCE-003"
    assert succeeded.result is not None
    assert succeeded.result["rows"]["inserted"] == 1


def test_steps_are_reported_in_order(folder: Folder) -> None:
    """Whoever listens sees each step of each batch: first of one without keys, then of one with."""
    steps: list[Step] = []

    def listen(event: Event) -> None:
        if isinstance(event, Reached):
            steps.append(event.step)

    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run(listen=listen)
    of_keys = {Step.LOCATED, Step.WRITTEN, Step.BEFORE_LOG, Step.LOGGED}
    assert steps == [step for step in Step if step not in of_keys]
    steps.clear()
    folder.change(table="shop.keyed", mode="upsert", key=["id"])
    folder.run(listen=listen)
    assert steps == list(Step)


def test_progress_is_reported_while_a_batch_is_loaded(folder: Folder) -> None:
    """A longer load tells rows and bytes on its way."""
    seen: list[Progressed] = []

    def listen(event: Event) -> None:
        if isinstance(event, Progressed):
            seen.append(event)

    text = "id,text\n" + "".join(
        f"{number},some text that takes its time {number}\n" for number in range(600_000)
    )
    for size in range(1, 11):  # Spark tells every two seconds; quick loads fall between
        for part in range(size):
            folder.write(f"landing/{size}-{part}.csv", text)
        assert folder.run(listen=listen).rows.inserted == 600_000 * size
        if seen:
            break
    assert seen
    assert 0 < seen[-1].rows <= 600_000 * size
    assert seen[-1].total_bytes == len(text) * size


def test_warehouse_that_cannot_be_written(make_folder: Callable[..., Folder]) -> None:
    """The folder is named before anything is read; once it can be written the run goes on."""
    folder = make_folder(catalog={"type": "sqlite", "warehouse": "here"})
    blocker = folder.write("here", "a file where the warehouse should be")
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    with pytest.raises(StoreNotWritable) as caught:
        folder.run()
    assert str(folder.path / "here") in caught.value.message
    blocker.unlink()
    assert folder.run().rows.inserted == 1


def test_catalog_that_is_no_database(make_folder: Callable[..., Folder]) -> None:
    """Garbage in the catalog's file is a clear error with exit status 4."""
    folder = make_folder(catalog={"type": "sqlite", "path": "broken.db"})
    folder.write("broken.db", "this is no database " * 100)
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    with pytest.raises(CatalogUnreachable) as caught:
        folder.run()
    assert caught.value.exit_status == 4


def test_two_catalogs_in_one_project(make_folder: Callable[..., Folder]) -> None:
    """A pipeline may load into a connection's catalog; tables of the same name stay apart."""
    folder = make_folder(
        connections={"archive": {"type": "sqlite", "path": "archive.db", "warehouse": "archive"}},
        pipelines={
            "sales": Folder.files_pipeline(),
            "old": Folder.files_pipeline("old/*.csv", table="shop.old", catalog="archive"),
        },
    )
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.write_csv("old/a.csv", ["id"], [(2,)])
    assert folder.open().run_all().status == "succeeded"
    assert folder.rows("archive.shop.old") == [(2,)]
    assert folder.rows("shop.old") == [(2,)]
    assert list(folder.path.glob("archive/shop/old/data/*.parquet"))


def test_system_tables_in_a_namespace_of_their_own(make_folder: Callable[..., Folder]) -> None:
    """With `system_namespace` nothing of Esker's stands beside the user's tables."""
    folder = make_folder(system_namespace="esker")
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    spark = folder.open().engine.spark
    assert [row.tableName for row in spark.sql("SHOW TABLES IN lake.shop").collect()] == ["sales"]
    assert [row.tableName for row in spark.sql("SHOW TABLES IN lake.esker").collect()] == [
        "shop__sales__files"
    ]
    assert folder.run().rows.read == 0
