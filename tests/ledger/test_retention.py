"""Old changes leave the log in whole files; what a consumer has not read stays, and the table needs none."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from esker.engine.iceberg.table import TableId
from esker.errors import ChangesForgotten
from esker.ledger.change_log import CHANGESET
from esker.ledger.retention import Retained, trim
from tests.load.works import CHANGES, WORKS, Works

pytestmark = pytest.mark.spark

LOG = TableId("lake", "shop.works__changes")
MONTH = timedelta(days=30)


@pytest.fixture
def works(tmp_path_factory: pytest.TempPathFactory, spark_running: None) -> Works:
    """A table with four changesets of two rows each."""
    works = Works(tmp_path_factory.mktemp("works"), lane="small", order_by="at")
    for number in range(1, 5):
        works.load([{"id": i, "at": number, "title": f"{number}"} for i in range(2)])
    return works


def changesets(works: Works) -> list[int]:
    return sorted({row[CHANGESET] for row in works.log()})


def test_old_changes_are_forgotten(works: Works) -> None:
    """Nothing is read or rewritten for it; asking for what is gone says what is still there."""
    engine = works.project.engine
    in_a_month = datetime.now(UTC) + timedelta(days=31)
    assert trim(engine, LOG, MONTH, datetime.now(UTC)).first == 1
    assert changesets(works) == [1, 2, 3, 4]
    second = works.snapshots(CHANGES)[1]
    works.sql(f"ALTER TABLE {CHANGES} CREATE TAG `esker-consumer-search` AS OF VERSION {second}")
    assert trim(engine, LOG, MONTH, in_a_month).first == 3
    assert changesets(works) == [3, 4]
    assert works.sql(f"SELECT count(*) FROM {CHANGES}.delete_files")[0][0] == 0
    with pytest.raises(ChangesForgotten, match="changeset 2") as caught:
        works.project.read_changes("shop.works", since=1)
    assert caught.value.first == 3
    with pytest.raises(ChangesForgotten):
        works.project.read_changes("shop.works", since="2020-01-01T00:00:00")
    assert works.project.read_changes("shop.works", since=2).count == 4
    assert works.project.read_changes("shop.works").since == 2
    # The table knows nothing of it, and the log goes on where it was.
    result = works.load([{"id": 0, "at": 9, "title": "x"}, {"id": 1, "at": 4, "title": "4"}])
    assert (result.changeset, result.rows.updated, result.rows.unchanged) == (5, 1, 1)
    works.sql(f"ALTER TABLE {CHANGES} DROP TAG `esker-consumer-search`")
    assert trim(engine, LOG, MONTH, in_a_month).first == 6
    assert changesets(works) == []
    assert works.project.read_changes("shop.works").count == 0
    assert works.load([{"id": 0, "at": 10, "title": "y"}]).changeset == 6
    assert changesets(works) == [6]


def test_a_file_of_old_and_new_changes_stays(works: Works) -> None:
    """Somebody merged the files of the log: what is old goes when all of the file is."""
    moment = works.sql(f"SELECT max(_esker_committed_at) FROM {CHANGES}")[0][0].astimezone(UTC)
    works.sql(
        "CALL lake.system.rewrite_data_files(table => 'shop.works__changes', "
        "options => map('min-input-files', '2'))"
    )
    works.load([{"id": 0, "at": 9, "title": "x"}])
    assert trim(works.project.engine, LOG, MONTH, moment + MONTH).first == 1
    assert trim(works.project.engine, LOG, MONTH, moment + MONTH + timedelta(microseconds=1)).first == 5
    assert changesets(works) == [5]


def test_a_publish_looks_once_a_day(works: Works) -> None:
    """Whoever publishes forgets what is old, without being told."""
    works.change(changes={"keep": "1ms"})
    works.load([{"id": 0, "at": 5, "title": "x"}])
    assert changesets(works) == [1, 2, 3, 4, 5]
    yesterday = Retained(1, datetime.now(UTC) - timedelta(days=1)).property()["esker.trimmed"]
    works.sql(f"ALTER TABLE {CHANGES} SET TBLPROPERTIES ('esker.trimmed' = '{yesterday}')")
    works.load([{"id": 0, "at": 6, "title": "y"}])
    assert changesets(works) == []
    assert json.loads(works.properties(CHANGES)["esker.trimmed"])["first"] == 7
    works.load([{"id": 0, "at": 7, "title": "z"}])
    assert changesets(works) == [7]
    assert len(works.snapshots(WORKS)) == 7
