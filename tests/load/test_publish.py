"""A batch is published once, or not at all, whoever else touches the table."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.errors import (
    CatalogUnreachable,
    EskerError,
    Fenced,
    LedgerForeign,
    LedgerMissing,
    LedgerUnreadable,
    LoadedFilesDamaged,
    PublishConflict,
    PublishUnknown,
    SchemaMoved,
    TableRewound,
)
from esker.events import Event, Listener, Reached, Step
from esker.ledger.entry import read_entry, read_head
from tests.folder import Folder
from tests.servers.seaweedfs import SeaweedFS

pytestmark = pytest.mark.spark
SALES = "lake.shop.sales"


def sql(folder: Folder, statement: str) -> list[Any]:
    """Do something to the table that Esker does not know of."""
    return folder.open().engine.spark.sql(statement).collect()


def properties(folder: Folder, table: str = SALES) -> dict[str, str]:
    return {row["key"]: row["value"] for row in sql(folder, f"SHOW TBLPROPERTIES {table}")}


def snapshots(folder: Folder, table: str = SALES) -> list[int]:
    rows = sql(folder, f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")
    return [row.snapshot_id for row in rows]


def at(step: Step, act: Callable[[], object]) -> Listener:
    """Do something the first time that a run reaches a step."""
    done = False

    def listen(event: Event) -> None:
        nonlocal done
        if not done and isinstance(event, Reached) and event.step is step:
            done = True
            act()

    return listen


@pytest.fixture(params=["embedded", pytest.param("rest", marks=pytest.mark.server)])
def folder(request: pytest.FixtureRequest, tmp_path: Path, spark_running: None) -> Folder:
    """A project folder with its tables on this machine, or behind a REST catalog in S3."""
    keys: dict[str, Any] = {}
    if request.param == "rest":
        seaweedfs: SeaweedFS = request.getfixturevalue("seaweedfs")
        keys = {"catalog": seaweedfs.catalog(seaweedfs.new_warehouse()), "store": seaweedfs.store()}
    return Folder(tmp_path / "project", **keys)


@pytest.fixture
def loaded(folder: Folder) -> Folder:
    """A project that has loaded one file and has a second one waiting."""
    folder.write_csv("landing/a.csv", ["id"], [(1,), (2,)])
    folder.run()
    folder.write_csv("landing/b.csv", ["id"], [(3,)])
    return folder


@pytest.fixture
def elsewhere(loaded: Folder) -> Folder:
    """The same project run by somebody with a state database of his own: no lease keeps them apart."""
    embedded = {
        "type": "sqlite",
        "path": f"{loaded.path}/.esker/catalog.db",
        "warehouse": f"{loaded.path}/.esker/warehouse",
    }
    document = {
        "catalog": embedded,
        **loaded.document,
        "state": {"url": f"sqlite:///{loaded.path}/other-state.db"},
    }
    other = Folder(loaded.path.parent / "elsewhere", **document)
    (other.path / "landing").rmdir()
    (other.path / "landing").symlink_to(loaded.path / "landing")
    return other


def test_data_and_ledger_are_one_commit(loaded: Folder) -> None:
    """The snapshot that holds the rows is the one that the ledger and the head name."""
    result = loaded.run()
    stored = properties(loaded)
    entry, head = read_entry(stored, "sales"), read_head(stored)
    assert entry is not None
    assert head is not None
    assert entry.position == result.position["to"]
    assert (entry.snapshot, entry.changeset, entry.run) == (result.snapshot_id, 2, result.run_id)
    assert (head.snapshot, head.changeset, head.sequence) == (entry.snapshot, 2, entry.sequence)
    assert (entry.project, entry.source, entry.epoch) == ("shop", "files", 2)
    assert snapshots(loaded)[-1] == result.snapshot_id
    assert len(snapshots(loaded)) == 2


def test_second_run_started_by_mistake_is_fenced(loaded: Folder, elsewhere: Folder) -> None:
    """Scenario 24: a run that wakes up after another took over publishes nothing."""
    with pytest.raises(Fenced) as caught:
        loaded.run(listen=at(Step.BEFORE_COMMIT, elsewhere.run))
    assert caught.value.landed == "no"
    assert caught.value.exit_status == 5
    assert loaded.rows() == [(1,), (2,), (3,)]
    assert loaded.run().rows.read == 0


def test_two_runs_at_once_load_each_file_once(loaded: Folder, elsewhere: Folder) -> None:
    """Scenario 24, unplanned: whoever loses the race is fenced, finds nothing, or loads the next file."""

    def run(folder: Folder) -> str:
        try:
            return str(folder.run().status)
        except Fenced as error:
            return f"fenced, landed: {error.landed}"

    ends = []
    with ThreadPoolExecutor(2) as pool:
        for number in range(4, 8):
            loaded.write_csv(f"landing/race-{number}.csv", ["id"], [(number,)])
            ends.append(sorted(pool.map(run, (loaded, elsewhere))))
    loaded.run()
    assert loaded.rows() == [(number,) for number in range(1, 8)]
    known = {"succeeded", "skipped", "fenced, landed: no"}
    assert all("succeeded" in pair and known.issuperset(pair) for pair in ends), ends
    head = read_head(properties(loaded))
    assert head is not None
    assert head.changeset == len(snapshots(loaded)), "each snapshot is a changeset: none was lost or doubled"


def test_zombie_never_claims_again(loaded: Folder, elsewhere: Folder) -> None:
    """A run with several batches that was overtaken after its first one ends at its second."""
    loaded.change(source={"type": "files", "path": "landing/*.csv", "format": "csv", "max_files": 1})
    loaded.write_csv("landing/c.csv", ["id"], [(4,)])
    loaded.write_csv("landing/d.csv", ["id"], [(5,)])
    with pytest.raises(Fenced):
        loaded.run(listen=at(Step.AFTER_COMMIT, elsewhere.run))
    assert loaded.rows() == [(1,), (2,), (3,), (4,), (5,)]
    assert loaded.run().rows.read == 0


def test_lost_answer_is_recognised(loaded: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenario 23: the catalog commits and the answer is lost; the batch is not committed twice."""
    swap = Attempt.swap

    def deaf(self: Attempt) -> None:
        swap(self)
        monkeypatch.setattr(Attempt, "swap", swap)
        raise SwapFailed("CommitStateUnknownException", "no answer")

    monkeypatch.setattr(Attempt, "swap", deaf)
    result = loaded.run()
    assert result.rows.inserted == 1
    assert loaded.rows() == [(1,), (2,), (3,)]
    assert snapshots(loaded)[-1] == result.snapshot_id


def test_lost_answer_with_a_successor_says_that_it_landed(
    loaded: Folder, elsewhere: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a lost answer another run has gone on: fenced, and the batch is in the table."""
    swap = Attempt.swap
    tries = 0

    def deaf(self: Attempt) -> None:
        nonlocal tries
        swap(self)
        tries += 1
        # The first swap of the run records the files, the second publishes the batch.
        if tries == 2:
            monkeypatch.setattr(Attempt, "swap", swap)
            loaded.write_csv("landing/c.csv", ["id"], [(4,)])
            elsewhere.run()
            raise SwapFailed("RESTException", "connection closed")

    monkeypatch.setattr(Attempt, "swap", deaf)
    with pytest.raises(Fenced) as caught:
        loaded.run()
    assert caught.value.landed == "yes"
    assert loaded.rows() == [(1,), (2,), (3,), (4,)]


def test_stalled_publish_does_not_land_after_a_rollback_to_its_base(
    loaded: Folder, elsewhere: Folder
) -> None:
    """A successor published and was rolled back: main is again where the stalled run saw it, and it is late.

    REST catalogs compare only which snapshot main is at; the sequence number tells the rest.
    """

    def overtake_and_roll_back() -> None:
        [base] = snapshots(loaded)
        elsewhere.run()
        sql(loaded, f"CALL lake.system.rollback_to_snapshot('shop.sales', {base})")

    with pytest.raises(Fenced) as caught:
        loaded.run(listen=at(Step.BEFORE_COMMIT, overtake_and_roll_back))
    assert caught.value.landed == "no"
    assert loaded.rows() == [(1,), (2,)]


def test_refused_swap_is_tried_again_on_the_new_table(loaded: Folder) -> None:
    """A foreign append between plan and publish costs an attempt, not the batch."""
    act = at(Step.BEFORE_COMMIT, lambda: sql(loaded, f"INSERT INTO {SALES} VALUES (100)"))
    assert loaded.run(listen=act).rows.inserted == 1
    assert loaded.rows() == [(1,), (100,), (2,), (3,)]


def test_table_that_always_moves_ends_with_a_conflict(
    loaded: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When no attempt lands, the run says so, nothing is in the table, and the next run loads all."""
    swap = Attempt.swap
    refused = 0

    def refuse(self: Attempt) -> None:
        nonlocal refused
        if "shop/sales__files" in self._table.location():
            swap(self)
            return
        refused += 1
        raise SwapFailed("CommitFailedException", "the table moved")

    monkeypatch.setattr(Attempt, "swap", refuse)
    monkeypatch.setattr("esker.engine.iceberg.rounds.LONGEST_PAUSE", 0.01)
    with pytest.raises(PublishConflict):
        loaded.run()
    assert refused == 30
    monkeypatch.setattr(Attempt, "swap", swap)
    assert loaded.rows() == [(1,), (2,)]
    assert loaded.run().rows.inserted == 1
    assert loaded.rows() == [(1,), (2,), (3,)]


def test_column_added_while_a_batch_is_staged(loaded: Folder) -> None:
    """Files are written for the columns that are committed; others cost a new staging."""
    act = at(Step.STAGED, lambda: sql(loaded, f"ALTER TABLE {SALES} ADD COLUMN note string"))
    assert loaded.run(listen=act).rows.inserted == 1
    assert loaded.rows() == [(1, None), (2, None), (3, None)]


def test_columns_that_change_again_and_again(loaded: Folder) -> None:
    """After some attempts the run gives up: nothing is published, and the next run loads all."""
    added = 0

    def listen(event: Event) -> None:
        nonlocal added
        if isinstance(event, Reached) and event.step is Step.STAGED:
            added += 1
            sql(loaded, f"ALTER TABLE {SALES} ADD COLUMN note{added} string")

    with pytest.raises(SchemaMoved):
        loaded.run(listen=listen)
    assert loaded.rows("shop.sales", "id") == [(1,), (2,)]
    assert loaded.run().rows.inserted == 1


def test_catalog_that_is_gone_after_a_commit(loaded: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the batch landed, nobody knows: the run says so, removes nothing, and the next one looks."""
    swap, look = Attempt.swap, Attempt.__init__
    is_gone = False

    def deaf(self: Attempt) -> None:
        nonlocal is_gone
        swap(self)
        is_gone = "shop/sales__files" not in self._table.location()
        if is_gone:
            raise SwapFailed("CommitStateUnknownException", "no answer")

    def refuse(self: Attempt, *arguments: Any, **keys: Any) -> None:
        if is_gone:
            raise CatalogUnreachable("lake", "connection refused")
        look(self, *arguments, **keys)

    monkeypatch.setattr(Attempt, "swap", deaf)
    monkeypatch.setattr(Attempt, "__init__", refuse)
    monkeypatch.setattr("esker.engine.iceberg.rounds.LONGEST_PAUSE", 0.01)
    with pytest.raises(PublishUnknown):
        loaded.run()
    monkeypatch.setattr(Attempt, "swap", swap)
    monkeypatch.setattr(Attempt, "__init__", look)
    assert loaded.rows() == [(1,), (2,), (3,)]
    assert loaded.run().rows.read == 0


def test_table_made_anew_while_its_first_batch_is_staged(folder: Folder) -> None:
    """Files of a table that was dropped are never added to another of the same name."""
    folder.write_csv("landing/a.csv", ["id", "name"], [(1, "one")])

    def replace_table() -> None:
        sql(folder, "DROP TABLE lake.shop.sales")
        sql(folder, "CREATE TABLE lake.shop.sales (name string, id bigint) USING iceberg")

    folder.run(listen=at(Step.STAGED, replace_table))
    assert folder.rows("shop.sales", "id", "name") == [(1, "one")]


def test_two_pipelines_that_plan_the_same_new_table(folder: Folder) -> None:
    """The second finds the table made by the first, without its column: it plans again, nothing is cut."""
    folder.document["pipelines"]["more"] = Folder.files_pipeline("more/*.csv")
    folder.save()
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.write_csv("more/a.csv", ["id", "note"], [(2, "kept")])
    folder.run("more", listen=at(Step.PLANNED, folder.run))
    assert folder.rows("shop.sales", "id", "note") == [(1, None), (2, "kept")]


@pytest.mark.parametrize(
    "act",
    [
        lambda folder: sql(
            folder, f"CALL lake.system.rollback_to_snapshot('shop.sales', {snapshots(folder)[0]})"
        ),
        lambda folder: sql(folder, f"CREATE OR REPLACE TABLE {SALES} USING iceberg AS SELECT 7L AS id"),
    ],
    ids=["rollback", "create or replace"],
)
def test_foreign_rewind_stops_the_run(loaded: Folder, act: Callable[[Folder], object]) -> None:
    """Scenario 39: the ledger survives what its data did not; the run stops with the choices."""
    loaded.run()
    act(loaded)
    loaded.write_csv("landing/c.csv", ["id"], [(4,)])
    before = loaded.rows()
    with pytest.raises(TableRewound) as caught:
        loaded.run()
    assert caught.value.exit_status == 5
    assert "set_current_snapshot" in caught.value.remedy
    assert loaded.rows() == before


def test_remedy_of_a_rewind_works(loaded: Folder) -> None:
    """Making the named snapshot current again lets the pipeline go on where it was."""
    loaded.run()
    sql(loaded, f"CALL lake.system.rollback_to_snapshot('shop.sales', {snapshots(loaded)[0]})")
    with pytest.raises(TableRewound) as caught:
        loaded.run()
    sql(loaded, f"CALL lake.system.set_current_snapshot('shop.sales', {caught.value.snapshot})")
    assert loaded.run().rows.read == 0
    assert loaded.rows() == [(1,), (2,), (3,)]


def test_expired_snapshots_do_not_lose_the_position(loaded: Folder) -> None:
    """Scenario 25: compaction and expiry by another engine change nothing for the pipeline."""
    loaded.run()
    sql(
        loaded,
        "CALL lake.system.rewrite_data_files(table => 'shop.sales', options => map('rewrite-all', 'true'))",
    )
    sql(
        loaded,
        "CALL lake.system.expire_snapshots(table => 'shop.sales', retain_last => 1, "
        "older_than => TIMESTAMP '2999-01-01 00:00:00')",
    )
    assert len(snapshots(loaded)) == 1
    assert loaded.run().rows.read == 0
    loaded.write_csv("landing/c.csv", ["id"], [(4,)])
    assert loaded.run().rows.inserted == 1
    assert loaded.rows() == [(1,), (2,), (3,), (4,)]


def test_rewind_hidden_by_expiry_is_still_found(loaded: Folder) -> None:
    """Rollback, foreign rows on top, then expiry: the earlier metadata files tell."""
    loaded.run()
    sql(loaded, f"CALL lake.system.rollback_to_snapshot('shop.sales', {snapshots(loaded)[0]})")
    for value in (50, 51):
        sql(loaded, f"INSERT INTO {SALES} VALUES ({value})")
    sql(
        loaded,
        "CALL lake.system.expire_snapshots(table => 'shop.sales', retain_last => 1, "
        "older_than => TIMESTAMP '2999-01-01 00:00:00')",
    )
    with pytest.raises(TableRewound):
        loaded.run()


def test_removed_ledger_is_damage_not_a_beginning(loaded: Folder) -> None:
    """Without its ledger a pipeline would load everything again; it stops instead."""
    sql(loaded, f"ALTER TABLE {SALES} UNSET TBLPROPERTIES ('esker.ledger.sales')")
    with pytest.raises(LedgerMissing):
        loaded.run()
    assert loaded.rows() == [(1,), (2,)]


def test_ledger_of_another_project_is_not_used(loaded: Folder) -> None:
    """Two projects with a pipeline of the same name do not share a position."""
    loaded.document["project"] = "other"
    loaded.save()
    with pytest.raises(LedgerForeign, match='project "shop"'):
        loaded.run()


def test_second_pipeline_into_one_table_counts_on(loaded: Folder) -> None:
    """Changesets are numbered per table; each pipeline has its own ledger and set of files."""
    loaded.document["pipelines"]["more"] = Folder.files_pipeline("more/*.csv")
    loaded.save()
    loaded.write_csv("more/a.csv", ["id"], [(10,)])
    assert loaded.run("more").changeset == 2
    assert loaded.run("sales").changeset == 3
    assert loaded.run("more").rows.read == 0
    assert loaded.rows() == [(1,), (10,), (2,), (3,)]


def test_lost_record_of_files_stops_the_run(loaded: Folder) -> None:
    """A dropped `__files` table is noticed: which files were loaded would be unknown."""
    sql(loaded, "DROP TABLE lake.shop.sales__files")
    with pytest.raises(LoadedFilesDamaged):
        loaded.run()
    assert loaded.rows() == [(1,), (2,)]


def test_unpublished_rows_in_the_record_of_files_mean_nothing(loaded: Folder) -> None:
    """A run that stops after it recorded its files leaves rows that no chain reaches."""

    def stop() -> None:
        raise EskerStop("here")

    for _ in range(2):
        with pytest.raises(EskerStop):
            loaded.run(listen=at(Step.RECORDED, stop))
    assert loaded.run().rows.inserted == 1
    recorded = sql(loaded, "SELECT batch, path FROM lake.shop.sales__files")
    assert len(recorded) == 4
    assert loaded.run().rows.read == 0
    assert loaded.rows() == [(1,), (2,), (3,)]


class EskerStop(EskerError):
    """A stop in the middle, for tests."""


def test_lost_state_database_changes_nothing(loaded: Folder) -> None:
    """Scenario 45: without history and leases the table still knows how far it is."""
    loaded.lose_state()
    assert loaded.run().rows.inserted == 1
    assert loaded.rows() == [(1,), (2,), (3,)]


def test_entry_that_cannot_be_read_is_an_error(loaded: Folder) -> None:
    """An edited ledger is named with its text, not guessed at."""
    sql(loaded, f"ALTER TABLE {SALES} SET TBLPROPERTIES ('esker.ledger.sales' = 'not json')")
    with pytest.raises(LedgerUnreadable, match=r"esker\.ledger\.sales"):
        loaded.run()


def test_slice_without_rows_commits_nothing_and_is_remembered(loaded: Folder) -> None:
    """A file with a header only makes no snapshot, and is not read again."""
    loaded.run()
    before = snapshots(loaded)
    loaded.write_csv("landing/empty.csv", ["id"], [])
    assert loaded.run().rows.read == 0
    assert snapshots(loaded) == before
    assert "nothing new" in loaded.run().notes[0]

    loaded.lose_state()
    assert loaded.run().rows.read == 0
    loaded.write_csv("landing/z.csv", ["id"], [(9,)])
    assert loaded.run().rows.inserted == 1
    assert loaded.run().rows.read == 0
    assert loaded.rows() == [(1,), (2,), (3,), (9,)]
