"""Tables that are only appended to: their snapshots are the log, whoever wrote them."""

from __future__ import annotations

import pytest

from esker.deliver import append_feed
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.file_frame import SnapshotFiles
from esker.engine.iceberg.manifests import LiveFiles
from esker.engine.iceberg.metadata import Snapshot
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import DeliveryRefused, ReindexNeeded, ReindexUnsuitable
from esker.events import Delivered, DeliveryStep, Event
from esker.pipeline.status import consumers_status
from tests.deliver.told import Tell, Told
from tests.folder import Folder
from tests.load.works import WORKS

pytestmark = pytest.mark.spark


@pytest.fixture(params=[10_000, 0], ids=["here", "spark"])
def told(tell: Tell, request: pytest.FixtureRequest) -> Told:
    """A consumer of a table without a key."""
    told = tell(id=["id"], batch={"spark": request.param})
    columns = {"id": "int", "title": "string"}
    pipeline = Folder.files_pipeline(table="shop.works", mode="append", columns=columns)
    told.works.folder.document["pipelines"]["works"] = pipeline
    told.change()
    return told


def lag(told: Told) -> int | None:
    [found] = consumers_status(told.works.project.project, told.works.project.state)
    return found.lag


def test_appended_rows_are_delivered(told: Told) -> None:
    """Each once, the newest of an id wins; rows of other engines come, too. Lag is of Esker's changesets."""
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "b"})
    assert lag(told) == 1
    result = told.deliver()
    assert (result.since, result.rows.sent) == (0, 2)
    assert lag(told) == 0
    told.works.sql(f"INSERT INTO {WORKS} VALUES (4, 'others')")
    told.load({"id": 3, "title": "c"})
    told.works.sql(f"INSERT INTO {WORKS} VALUES (1, 'others')")
    assert lag(told) == 1
    result = told.deliver()
    assert (result.changesets, result.rows.sent) == (3, 3)
    assert told.titles() == {"1": "others", "2": "b", "3": "c", "4": "others"}
    assert lag(told) == 0
    told.works.load([])  # nothing new: the last changeset is still the last
    assert lag(told) == 0
    assert told.deliver().changesets == 0
    tags = {row["name"] for row in told.works.sql(f"SELECT name FROM {WORKS}.refs")}
    assert "esker-consumer-shop-search" in tags


def test_files_that_are_put_together_are_no_changes(told: Told) -> None:
    """A compaction is read past; what was appended before and behind it arrives once."""
    told.load({"id": 1, "title": "a"})
    told.deliver()
    told.load({"id": 2, "title": "b"})
    told.works.sql(
        "CALL lake.system.rewrite_data_files(table => 'shop.works', options => map('min-input-files', '2'))"
    )
    told.load({"id": 3, "title": "c"})
    assert told.deliver().rows.sent == 2
    assert told.titles() == {"1": "a", "2": "b", "3": "c"}


def test_many_snapshots_are_read_together(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many wait: files are looked up in as many snapshots as compactions call for, not in each."""
    looked: list[int] = []
    files_at, planned = Attempt.files_at, SnapshotFiles.__init__

    def counted(self: Attempt, snapshot: Snapshot) -> LiveFiles:
        looked.append(snapshot.id)
        return files_at(self, snapshot)

    def counted_plan(self: SnapshotFiles, engine: Engine, table: TableId, snapshot: int) -> None:
        plans.append(snapshot)
        planned(self, engine, table, snapshot)

    plans: list[int] = []
    told.load({"id": 0, "title": "a"})
    told.deliver()
    for number in range(1, 6):
        told.load({"id": number, "title": f"{number}"}, {"id": 0, "title": f"{number}"})
    monkeypatch.setattr(Attempt, "files_at", counted)
    monkeypatch.setattr(SnapshotFiles, "__init__", counted_plan)
    result = told.deliver()
    assert (result.changesets, result.rows.sent) == (5, 6)
    assert told.titles() == {str(number): f"{number}" for number in range(1, 6)} | {"0": "5"}
    assert (len(looked), len(plans)) in [(0, 0), (0, 1)]
    looked.clear()
    plans.clear()
    told.load({"id": 7, "title": "b"})
    told.load({"id": 8, "title": "c"})
    told.works.sql(
        "CALL lake.system.rewrite_data_files(table => 'shop.works', options => map('min-input-files', '2'))"
    )
    told.load({"id": 9, "title": "d"})
    assert told.deliver().rows.sent == 3
    assert (len(looked), len(plans)) in [(1, 0), (1, 2)]


def test_a_step_has_so_many_snapshots_at_most(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of snapshots with few rows: the offset moves on the way."""
    monkeypatch.setattr(append_feed, "_MOST_STEPS", 2)
    for number in range(5):
        told.load({"id": number, "title": "a"})
    stored: list[Event] = []

    def listen(event: Event) -> None:
        if isinstance(event, Delivered) and event.step is DeliveryStep.STORED:
            stored.append(event)

    assert told.deliver(listen).rows.sent == 5
    assert len(stored) == 3


def test_snapshots_that_are_expired_are_found_by_comparing(told: Told) -> None:
    """The tag keeps the snapshot that was told last; what came since is the difference."""
    told.load({"id": 1, "title": "a"})
    told.deliver()
    told.load({"id": 2, "title": "b"})
    told.load({"id": 3, "title": "c"})
    told.works.sql(
        "CALL lake.system.expire_snapshots(table => 'shop.works', older_than => TIMESTAMP '2999-01-01', "
        "retain_last => 1)"
    )
    told.works.project = told.works.folder.open()
    assert told.deliver().rows.sent == 2
    assert told.titles() == {"1": "a", "2": "b", "3": "c"}


def test_rows_that_were_changed_ask_for_a_reindex(told: Told) -> None:
    """A log that only tells of rows that came cannot tell of others."""
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "b"})
    told.deliver()
    told.works.sql(f"DELETE FROM {WORKS} WHERE id = 1")
    told.works.project = told.works.folder.open()
    with pytest.raises(ReindexNeeded) as caught:
        told.deliver()
    assert "changed or deleted" in caught.value.reason
    told.reindex(into="second")
    assert told.titles() == {"2": "b"}
    told.load({"id": 2, "title": "c"})
    told.deliver()
    assert told.titles() == {"2": "c"}


def test_a_reindex_and_dead_letters_of_rows_that_came_twice(told: Told) -> None:
    """Of several rows of one id, the one that came last is the document."""
    told.load({"id": 1, "title": "refused"}, {"id": 2, "title": "b"})
    told.load({"id": 2, "title": "c"})
    told.deliver()
    assert told.titles() == {"2": "c"}
    assert told.deliver(retry_dead=True).rows.known == 1
    told.load({"id": 1, "title": "d"})
    assert told.reindex(into="second").rows.rows == 2
    assert told.titles() == {"1": "d", "2": "c"}


def test_files_that_others_add_whole_are_delivered(told: Told) -> None:
    """Their manifests do not say which snapshot added them: they inherit it."""
    told.load({"id": 1, "title": "a"})
    told.deliver()
    files = told.works.folder.path / "others"
    told.works.project.engine.spark.sql("SELECT 2 AS id, 'b' AS title").write.parquet(str(files))
    told.works.sql(
        f"CALL lake.system.add_files(table => 'shop.works', source_table => '`parquet`.`{files}`')"
    )
    told.works.project = told.works.folder.open()
    assert told.deliver().rows.sent == 1
    assert told.titles() == {"1": "a", "2": "b"}


def test_rows_of_one_id_that_were_put_together_cannot_be_told_apart(told: Told) -> None:
    """Nobody knows which came last: a reindex is refused, and one with an id in each row is not."""
    told.load({"id": 1, "title": "a"})
    told.load({"id": 2, "title": "b"})
    compact = (
        "CALL lake.system.rewrite_data_files(table => 'shop.works', options => map('rewrite-all', 'true'))"
    )
    told.works.sql(compact)
    told.works.project = told.works.folder.open()
    told.reindex(into="second")
    assert told.titles() == {"1": "a", "2": "b"}
    told.load({"id": 1, "title": "c"})
    told.works.sql(compact)
    told.works.project = told.works.folder.open()
    with pytest.raises(DeliveryRefused) as caught:
        told.reindex(into="third")
    assert "several rows with id 1" in caught.value.reason


def test_snapshots_of_format_version_1_have_no_order(told: Told) -> None:
    """The first row of an id would stay at the target for good: refused, until the table is upgraded."""
    told.works.project.engine.open_catalog("lake")
    told.works.sql("CREATE NAMESPACE lake.shop")
    told.works.sql(
        f"CREATE TABLE {WORKS} (id int, title string) USING iceberg TBLPROPERTIES ('format-version' = '1')"
    )
    told.load({"id": 1, "title": "a"})
    told.load({"id": 2, "title": "b"})
    with pytest.raises(DeliveryRefused) as caught:
        told.deliver()
    assert "format version 1" in caught.value.reason
    assert "format_version: 2" in caught.value.remedy
    told.works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('format-version' = '2')")
    told.works.project = told.works.folder.open()
    assert told.deliver().rows.sent == 2
    told.load({"id": 1, "title": "c"})
    told.deliver()
    assert told.titles() == {"1": "c", "2": "b"}


def test_rows_of_one_id_of_before_an_upgrade_cannot_be_told_apart(told: Told) -> None:
    """Neither in the next delivery, nor in a reindex."""
    told.works.project.engine.open_catalog("lake")
    told.works.sql("CREATE NAMESPACE lake.shop")
    told.works.sql(
        f"CREATE TABLE {WORKS} (id int, title string) USING iceberg TBLPROPERTIES ('format-version' = '1')"
    )
    for title in ("a", "b"):
        told.load({"id": 1, "title": title})
    told.works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('format-version' = '2')")
    told.works.project = told.works.folder.open()
    for act in (told.deliver, told.reindex):
        with pytest.raises(DeliveryRefused) as caught:
            act()
        assert "several rows with id 1" in caught.value.reason


def test_ids_whose_text_is_not_certain_are_refused(tell: Tell) -> None:
    """Rows could not be found again by them."""
    told = tell()
    columns = {"id": "double", "title": "string"}
    pipeline = Folder.files_pipeline(table="shop.works", mode="append", columns=columns)
    told.works.folder.document["pipelines"]["works"] = pipeline
    told.change(id=["id"])
    told.load({"id": 1.0, "title": "a"})
    with pytest.raises(DeliveryRefused) as caught:
        told.deliver()
    assert "type double" in caught.value.reason


def test_a_row_without_an_id_is_a_dead_letter(told: Told) -> None:
    """It is never looked for: a row whose id is the text `null` is another one."""
    told.load({"id": None, "title": "a"}, {"id": 2, "title": "b"})
    result = told.deliver()
    assert (result.rows.sent, result.rows.dead) == (1, 1)
    [letter] = told.letters()
    assert (letter["stage"], letter["error"][:14]) == ("transform", "its id is null")
    assert told.deliver(retry_dead=True).rows.rows == 0
    assert told.titles() == {"2": "b"}


def test_tasks_are_done_in_order_where_versions_are_not_kept(tell: Tell) -> None:
    """Of several rows of one id, the newest must come last."""
    told = tell(versions=False, reindex={"rows": 1})
    pipeline = Folder.files_pipeline(table="shop.works", mode="append")
    told.works.folder.document["pipelines"]["works"] = pipeline
    told.change(id=["id"])
    told.load({"id": 1, "title": "a"})
    told.load({"id": 1, "title": "b"})
    assert len(told.works.project.reindex_plan("search").tasks) == 2
    with pytest.raises(ReindexUnsuitable) as caught:
        told.works.project.run_reindex_task("search", 1)
    assert "0 is not done" in caught.value.reason
    for number in (0, 1):
        told.works.project.run_reindex_task("search", number)
    told.reindex()
    assert told.titles() == {"1": "b"}
