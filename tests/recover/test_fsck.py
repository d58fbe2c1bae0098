"""fsck finds what is broken, says which file it is, and finds nothing in tables that are whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from esker.errors import Interrupted, LedgerTooNew, LedgerUnreadable
from esker.events import Step
from esker.recover.finding import Finding
from tests.command import CHILD_SPARK, esker
from tests.folder import Folder
from tests.load.works import CHANGES, WORKS, Make, Works, at
from tests.recover.damage import checks, findings, pointer, truncate

pytestmark = pytest.mark.spark


def load(works: Works) -> None:
    """Load a table in three batches: inserts, then an update and a delete in files of their own."""
    works.load([{"id": number, "at": 1, "name": f"stone {number}"} for number in range(6)])
    works.load([{"id": 1, "at": 2, "name": "agate"}, {"id": None, "at": 2, "name": "nobody's"}])
    works.load([{"id": 2, "at": 3, "name": None, "deleted": True}, {"id": 9, "at": 3, "name": "chalk"}])


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def works(request: pytest.FixtureRequest, make: Make) -> Works:
    """A table loaded by key, with deletes, a change log and a quarantine."""
    works = make(order_by="at", deletes="hard", format_version=request.param, bad_rows="quarantine")
    load(works)
    return works


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, found
    return found[0]


def test_tables_that_are_whole(works: Works) -> None:
    """Branches, tags, expired snapshots and compacted files are no damage, and all is looked at."""
    for statement in (
        f"ALTER TABLE {WORKS} CREATE BRANCH trial",
        f"ALTER TABLE {WORKS} CREATE TAG first AS OF VERSION {works.snapshots()[0]}",
        "CALL lake.system.rewrite_data_files(table => 'shop.works', options => map('rewrite-all', 'true'))",
        "CALL lake.system.expire_snapshots(table => 'shop.works', retain_last => 1, "
        "older_than => TIMESTAMP '2999-01-01 00:00:00')",
    ):
        works.sql(statement)
    works.load([{"id": 1, "at": 4, "name": "opal"}])
    found = works.project.fsck(deep=True)
    assert findings(found) == []
    looked_at = {str(each.table): each.checked for each in found.tables}
    assert set(looked_at) == {f"shop.works{end}" for end in ("", "__changes", "__quarantine", "__deletes")}
    files = works.sql(f"SELECT content FROM {WORKS}.all_files WHERE content = 0")
    assert looked_at["shop.works"].data_files >= 2
    assert looked_at["shop.works"].data_files <= len(files)
    assert looked_at["shop.works"].delete_files >= 1
    assert looked_at["shop.works__changes"].data_files == len(works.sql(f"SELECT 1 FROM {CHANGES}.files"))


def _one(works: Works, table: str, column: str = "file_path") -> Path:
    """Return a file of a table, the newest."""
    return Path(works.sql(f"SELECT {column} f FROM {table}")[0].f.removeprefix("file:").replace("///", "/"))


DAMAGE: dict[str, Callable[[Works], Path]] = {
    "manifest_list": lambda works: _one(
        works, f"{WORKS}.snapshots ORDER BY committed_at DESC", "manifest_list"
    ),
    "manifest": lambda works: _one(works, f"{WORKS}.manifests WHERE content = 0", "path"),
    "data_file": lambda works: _one(works, f"{WORKS}.data_files"),
    "delete_file": lambda works: _one(works, f"{WORKS}.delete_files"),
}


def test_files_that_are_gone_or_altered(make: Make) -> None:
    """Each is found by name, with the snapshot that added it; put back, the table is whole."""
    works = make(order_by="at", deletes="hard")
    load(works)
    snapshots = works.snapshots()
    for check, find in DAMAGE.items():
        file = find(works)
        content = file.read_bytes()
        for left in (None, content[:-7]):
            file.unlink() if left is None else file.write_bytes(left)
            looked_at = works.project.fsck()
            found = only([each for each in findings(looked_at) if each.is_damage])
            assert found.check == check
            assert found.file is not None
            assert found.file.endswith(file.name)
            assert found.snapshot in snapshots
            assert next(works.project.plan_repairs(looked_at), None) is None, "no file can be made up"
            file.write_bytes(content)
    assert findings(works.project.fsck()) == []


def test_the_way_back_from_a_lost_manifest_list(make: Make) -> None:
    """The newest snapshot before it that can be read is named."""
    works = make(order_by="at")
    load(works)
    DAMAGE["manifest_list"](works).unlink()
    found = only([each for each in findings(works.project.fsck()) if each.is_damage])
    assert str(works.snapshots()[-2]) in found.remedy


def test_bytes_that_are_no_rows(make: Make) -> None:
    """A file of the right size with other bytes is found by a deep look only."""
    works = make(order_by="at")
    load(works)
    file = DAMAGE["data_file"](works)
    file.write_bytes(bytes(file.stat().st_size))
    assert checks(works.project) == []
    assert checks(works.project, deep=True) == ["data_file"]


def test_an_older_snapshot_that_cannot_be_read(make: Make) -> None:
    """The table can be used: a note, and no damage."""
    works = make(order_by="at")
    load(works)
    _one(works, f"{WORKS}.snapshots ORDER BY committed_at", "manifest_list").unlink()
    found = only(findings(works.project.fsck()))
    assert (found.check, found.is_damage, found.snapshot) == ("manifest_list", False, works.snapshots()[0])


def test_a_property_that_was_edited(make: Make) -> None:
    """It is named, with where its value can be found; a run stops with a clear error."""
    works = make(order_by="at")
    load(works)
    stored = works.properties()
    for name in ("esker.head", "esker.ledger.works", "esker.outbox", "esker.log"):
        works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('{name}' = '{{\"n\": ')")
        found = only(findings(works.project.fsck()))
        assert found.check == "ledger"
        assert name in found.what
        assert "earlier metadata file" in found.remedy
        with pytest.raises(LedgerUnreadable, match=re.escape(name)):
            works.load([{"id": 1, "at": 9, "name": "opal"}])
        works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('{name}' = '{stored[name]}')")
    assert findings(works.project.fsck()) == []


def test_a_property_of_a_newer_esker(make: Make) -> None:
    """It is no damage: the other version is needed, by fsck and by a run."""
    works = make(order_by="at")
    load(works)
    newer = json.dumps({**json.loads(works.properties()["esker.head"]), "version": 2})
    works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('esker.head' = '{newer}')")
    found = only(findings(works.project.fsck()))
    assert (found.check, found.is_damage) == ("ledger", False)
    assert "Install that version" in found.remedy
    with pytest.raises(LedgerTooNew, match=r"esker\.head"):
        works.load([{"id": 1, "at": 9, "name": "opal"}])


@pytest.mark.parametrize("name", ["esker.foreign", "esker.gaps", "esker.trimmed", "esker.logged.at"])
def test_properties_that_only_some_commands_read(make: Make, name: str) -> None:
    """Those of the change log, too: `esker fsck` looks at all of them, and says which version is needed."""
    works = make(order_by="at")
    load(works)
    table = WORKS if name == "esker.foreign" else CHANGES
    works.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{name}' = '{{\"version\": 2}}')")
    found = only(findings(works.project.fsck()))
    assert (found.check, found.is_damage) == ("ledger", False)
    assert name in found.what
    assert (CHANGES.partition(".")[2] in found.what) == (table == CHANGES)


def test_tables_that_do_not_fit_together(make: Make) -> None:
    """A table that was rolled back, and a change log that was dropped."""
    works = make(order_by="at")
    load(works)
    works.sql(f"CALL lake.system.rollback_to_snapshot('shop.works', {works.snapshots()[0]})")
    assert "no longer descends" in only(findings(works.project.fsck())).what
    works.sql(f"DROP TABLE {CHANGES}")
    found = [each for each in findings(works.project.fsck()) if each.check == "log"]
    assert "not in the catalog" in only(found).what


def test_staged_changes_that_are_gone(make: Make) -> None:
    """The next run makes them anew, and fsck says so."""
    works = make(order_by="at")

    def die() -> None:
        raise KeyboardInterrupt

    works.load([{"id": 1, "at": 1, "name": "flint"}])
    with pytest.raises(Interrupted):
        works.load([{"id": 1, "at": 2, "name": "agate"}], at(Step.BEFORE_LOG, die))
    [entry] = [entry for entry in works.outbox() if entry["n"] == 2]
    [staged] = works.folder.path.rglob(entry["f"][0][0])
    staged.unlink()
    found = only(findings(works.project.fsck()))
    assert (found.check, found.is_damage) == ("outbox", False)
    works.load([{"id": 3, "at": 3, "name": "chalk"}])
    assert findings(works.project.fsck()) == []
    assert works.ops(2) == {1: "update"}


@pytest.mark.process
def test_the_command(folder: Folder) -> None:
    """Findings and the plan as JSON and for people; nothing is done unasked; exit statuses."""
    folder.document["spark"] = CHILD_SPARK
    folder.save()
    for number in (1, 2):
        folder.write_csv(f"landing/{number}.csv", ["id"], [(number,)])
        folder.run()
    broken = pointer(folder, "sales")
    truncate(broken)
    run = esker(folder.path, "run", "--json")
    assert (run.status, run.error["code"]) == (1, "ESK-RECOVER-001")
    assert broken.name in run.error["reason"]
    assert "esker fsck shop.sales" in run.error["remedy"]
    looked = esker(folder.path, "fsck", "shop.sales", "--repair", "--json")
    assert looked.status == 1
    [plan] = looked.document["repairs"]
    assert (plan["repair"], plan["applied"], plan["commits_lost"]) == ("restore", False, 1)
    assert [each["added_rows"] for each in plan["snapshots_lost"]] == [1]
    assert pointer(folder, "sales") == broken
    done = esker(folder.path, "fsck", "--repair", "--yes")
    assert done.status == 0, done.stdout + done.stderr
    assert "cut off" in done.stdout
    assert "the next run loads again" in done.stdout
    assert broken.is_file()
    folder.run()
    assert folder.rows() == [(1,), (2,)]
    assert {table["status"] for table in folder.open().fsck().as_json()["tables"]} == {"clean"}
