"""What other engines do to a log between two deliveries: nothing is lost, or a reindex is asked for."""

from __future__ import annotations

import pytest

from esker.errors import ReindexNeeded
from tests.deliver.told import Tell, Told
from tests.folder import Folder
from tests.load.works import CHANGES, WORKS

pytestmark = pytest.mark.spark

EXPIRE = (
    "CALL lake.system.expire_snapshots(table => '{}', older_than => TIMESTAMP '2999-01-01', retain_last => 1)"
)
COMPACT = "CALL lake.system.rewrite_data_files(table => '{}', options => map('rewrite-all', 'true'))"


def call(told: Told, *statements: str, table: str = "shop.works__changes") -> None:
    """Let another engine do something to a table, and open the project as another process would."""
    for statement in statements:
        told.works.sql(statement.format(table))
    told.works.project = told.works.folder.open()


def reason(told: Told) -> str:
    """Deliver, and return why a reindex is needed."""
    with pytest.raises(ReindexNeeded) as caught:
        told.deliver()
    assert "esker reindex search" in caught.value.remedy
    return caught.value.reason


def test_a_log_that_others_compact_and_expire_loses_nothing(tell: Tell) -> None:
    """Also where the state database is lost, and only the tag says where to go on."""
    told = tell(batch={"rows": 1})

    def lose() -> None:
        told.works.folder.lose_state()
        told.works.project = told.works.folder.open()

    told.load({"id": 1, "title": "a"})
    told.deliver()
    told.load({"id": 1, "title": "b"}, {"id": 2, "title": "b"})
    told.load({"id": 2, "title": "c"})
    call(told, EXPIRE)  # the snapshots between
    assert told.deliver().since == 1
    assert told.titles() == {"1": "b", "2": "c"}
    told.load({"id": 3, "title": "d"})
    call(told, COMPACT)  # what was told and what was not, in one file
    result = told.deliver()
    assert (result.since, result.until, result.rows.sent) == (3, 4, 1)
    told.load({"id": 4, "title": "e"})
    call(told, EXPIRE)  # all but the compaction's, where the tag is
    lose()
    result = told.deliver()
    assert (result.since, result.until, result.rows.sent) == (4, 5, 1)
    told.load({"id": 5, "title": "f"})
    call(told, COMPACT, EXPIRE)  # also the snapshot that logged what was not told
    result = told.deliver()
    assert (result.since, result.until, result.rows.sent) == (5, 6, 1)
    lose()
    told.load({"id": 1, "title": "g"})
    result = told.deliver()
    assert (result.since, result.until, result.rows.sent) == (6, 7, 1)
    assert told.titles() == {"1": "g", "2": "c", "3": "d", "4": "e", "5": "f"}


def test_a_new_consumer_of_a_log_that_others_cared_for(tell: Tell) -> None:
    """All that was ever logged is there: a compaction and an expiry take none of it."""
    told = tell(versions=False)
    for number in range(1, 4):
        told.load({"id": 1, "title": f"{number}"})
    call(told, COMPACT, EXPIRE)
    told.deliver()
    assert told.shelf.sent() == [("1", 1, "insert"), ("1", 2, "update"), ("1", 3, "update")]


def test_a_table_that_was_made_anew_asks_for_a_reindex(tell: Tell) -> None:
    """Its changesets are others, whatever their numbers."""
    told = tell()
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "b"})
    told.deliver()
    call(told, "DROP TABLE {} PURGE", "DROP TABLE lake.shop.works PURGE", table=CHANGES)
    told.load({"id": 1, "title": "c"})
    assert "created again" in reason(told)
    told.reindex(into="second")
    assert told.titles() == {"1": "c"}
    told.load({"id": 3, "title": "d"})
    told.deliver()
    assert told.titles() == {"1": "c", "3": "d"}


def test_a_log_that_was_rolled_back_asks_for_a_reindex(tell: Tell) -> None:
    """What has been told may not be in it any more."""
    told = tell()
    told.load({"id": 1, "title": "a"})
    first = told.works.snapshots(CHANGES)[-1]
    told.load({"id": 2, "title": "b"})
    told.deliver()
    call(told, f"CALL lake.system.rollback_to_snapshot('{{}}', {first})")
    assert "rolled back" in reason(told)
    told.reindex(into="second")
    assert told.titles() == {"1": "a", "2": "b"}


def test_a_log_that_was_restored_from_before_asks_for_a_reindex(tell: Tell) -> None:
    """It ends before what has been told."""
    told = tell()
    told.load({"id": 1, "title": "a"})
    [location] = {
        row["file"]
        for row in told.works.sql(
            f"SELECT file FROM {CHANGES}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
        )
    }
    told.load({"id": 2, "title": "b"})
    told.load({"id": 3, "title": "c"})
    told.deliver()
    call(told, "DROP TABLE {}", table=CHANGES)
    call(told, f"CALL lake.system.register_table(table => '{{}}', metadata_file => '{location}')")
    assert "change log was restored" in reason(told)


def test_an_append_only_table_that_was_rolled_back_or_made_anew(tell: Tell) -> None:
    """Rows that have been told are gone, and nobody told that."""
    told = tell(id=["id"])
    columns = {"id": "int", "title": "string"}
    pipeline = Folder.files_pipeline(table="shop.works", mode="append", columns=columns)
    told.works.folder.document["pipelines"]["works"] = pipeline
    told.change()
    told.load({"id": 1, "title": "a"})
    first = told.works.snapshots()[-1]
    told.load({"id": 2, "title": "b"})
    told.deliver()
    call(told, f"CALL lake.system.rollback_to_snapshot('{{}}', {first})", table="shop.works")
    assert "rolled back" in reason(told)
    call(told, "INSERT INTO {} VALUES (3, 'c')", table=WORKS)
    assert "rolled back" in reason(told)
    told.reindex(into="second")
    assert told.titles() == {"1": "a", "3": "c"}
    call(told, "DROP TABLE {} PURGE", table=WORKS)
    told.load({"id": 4, "title": "d"})
    assert "made anew" in reason(told)
