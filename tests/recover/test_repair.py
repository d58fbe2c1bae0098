"""A table whose metadata file is broken goes back to the one before, and every row is there once."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.pointers import NextFile
from esker.engine.iceberg.pointers.hadoop import HadoopPointers
from esker.engine.iceberg.table import TableId
from esker.engine.iceberg.table_files import TableFiles
from esker.errors import LoadedFilesDamaged, LogAhead, MetadataDamaged, NothingToRestore, RepairOutdated
from esker.pipeline.fsck import Renumber
from esker.recover.records import Reappend
from esker.recover.repair import Restore
from tests.folder import Folder
from tests.load.works import CHANGES, Make, Works
from tests.recover.damage import (
    BREAK,
    catalog_of,
    checks,
    findings,
    point_to,
    pointer,
    previous,
    repair,
    truncate,
)

pytestmark = pytest.mark.spark


@pytest.fixture
def loaded(folder: Folder) -> Folder:
    """A project that has loaded three files, each in a batch of its own."""
    for number in (1, 2, 3):
        folder.write_csv(f"landing/{number}.csv", ["id"], [(number,)])
        folder.run()
    return folder


def files_of(folder: Folder) -> set[Path]:
    return {file for file in (folder.path / ".esker" / "warehouse").rglob("*") if file.is_file()}


@pytest.mark.parametrize("how", [*BREAK, "nowhere", "three"])
def test_a_broken_metadata_file(how: str, loaded: Folder) -> None:
    """A run names the file and changes nothing; a repair goes back; the next run loads what is lost."""
    broken = pointer(loaded, "sales")
    lost = 1
    if how == "nowhere":
        broken = broken.with_name("00009-7d5a.metadata.json")
        point_to(loaded, f"file:{broken}", "sales")
    elif how == "three":
        for file in (*previous(broken)[:2], broken):
            truncate(file)
        lost = 3
    else:
        BREAK[how](broken)
    before = files_of(loaded)
    with pytest.raises(MetadataDamaged, match=r"shop\.sales") as caught:
        loaded.run()
    assert broken.name in caught.value.reason
    assert caught.value.exit_status == 1
    project = loaded.open()
    assert checks(project) == ["metadata"]
    [done] = repair(project)
    assert isinstance(done, Restore)
    assert len(done.lost) == (0 if how == "nowhere" else lost)
    assert files_of(loaded) >= before, "nothing is ever deleted"
    assert loaded.rows() == [(number,) for number in range(1, 4 if how == "nowhere" else 4 - lost)]
    assert findings(loaded.open().fsck()) == []
    loaded.run()
    assert loaded.rows() == [(1,), (2,), (3,)]
    assert loaded.run().rows.read == 0
    assert findings(loaded.open().fsck()) == []


def test_nothing_to_go_back_to(loaded: Folder) -> None:
    """Without any file that is whole, the repair says what it has seen."""
    broken = pointer(loaded, "sales")
    for file in (*previous(broken), broken):
        file.write_bytes(b"")
    with pytest.raises(NothingToRestore, match="no earlier") as caught:
        repair(loaded.open())
    assert "it is empty" in caught.value.reason


def test_a_commit_that_lost_a_race_is_no_state_of_the_table(loaded: Folder) -> None:
    """A file of the same version that the catalog never pointed to, and one behind it, are passed over."""
    broken = pointer(loaded, "sales")
    [good, *_] = previous(broken)
    loser = json.loads(broken.read_text())
    loser["properties"]["esker.head"] = "somebody's"
    broken.with_name("00003-loser.metadata.json").write_text(json.dumps(loser))
    broken.with_name("00004-loser.metadata.json").write_text(json.dumps(loser))
    broken.unlink()
    [done] = repair(loaded.open())
    assert isinstance(done, Restore)
    assert done.previous.location.endswith(good.name)


@pytest.mark.parametrize("named_by", ["catalog", "log"])
def test_a_commit_that_failed_does_not_stand_in_for_one_that_is_lost(named_by: str, loaded: Folder) -> None:
    """It has its version for itself only because the file that was committed is gone."""
    broken = pointer(loaded, "sales")
    [lost, good, *_] = previous(broken)
    if named_by == "log":
        # Of a commit that failed, too: what was before it, it tells truly.
        broken.with_name("00004-loser.metadata.json").write_text(broken.read_text())
        with closing(sqlite3.connect(catalog_of(loaded))) as catalog, catalog:
            catalog.execute("UPDATE iceberg_tables SET previous_metadata_location = NULL")
    lost.rename(lost.with_name(f"{lost.name[:5]}-loser.metadata.json"))
    broken.unlink()
    [done] = repair(loaded.open())
    assert isinstance(done, Restore)
    assert done.previous.location.endswith(good.name)
    assert any("loser" in each for each in done.previous.passed_over)
    loaded.run()
    assert loaded.rows() == [(1,), (2,), (3,)]


def test_a_commit_of_somebody_else_is_never_overwritten(loaded: Folder) -> None:
    """Who restored the file and committed before the repair keeps the commit."""
    broken = pointer(loaded, "sales")
    content = broken.read_bytes()
    truncate(broken)
    project = loaded.open()
    found = project.fsck()
    [plan] = project.plan_repairs(found)
    broken.write_bytes(content)
    loaded.write_csv("landing/4.csv", ["id"], [(4,)])
    loaded.run()
    with pytest.raises(RepairOutdated):
        project.repair(found, plan)
    assert loaded.rows() == [(1,), (2,), (3,), (4,)]


def test_a_writer_of_the_past_is_refused(loaded: Folder) -> None:
    """Who built a commit on the very metadata that is restored must look at the table again."""
    engine = loaded.open().engine
    engine.open_catalog("lake")
    attempt = Attempt(engine, TableId("lake", "shop.sales"))
    attempt.touch({})
    loaded.write_csv("landing/4.csv", ["id"], [(4,)])
    loaded.run()
    truncate(pointer(loaded, "sales"))
    [done] = repair(loaded.open())
    assert isinstance(done, Restore)
    assert attempt.version == done.previous.location
    with pytest.raises(SwapFailed):
        attempt.swap()
    assert loaded.run().rows.inserted == 1
    assert loaded.rows() == [(1,), (2,), (3,), (4,)]


def test_a_repair_that_is_killed(loaded: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it wrote is no state of the table; a second repair finishes."""
    truncate(pointer(loaded, "sales"))
    write = NextFile.write

    def die(following: NextFile, files: TableFiles) -> str:
        write(following, files)
        raise KeyboardInterrupt

    monkeypatch.setattr(NextFile, "write", die)
    with pytest.raises(KeyboardInterrupt):
        repair(loaded.open())
    monkeypatch.undo()
    assert checks(loaded.open()) == ["metadata"]
    [_] = repair(loaded.open())
    loaded.run()
    assert loaded.rows() == [(1,), (2,), (3,)]


def test_a_repair_in_folders_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a catalog of folders, scratch files of repairs and of Iceberg are no versions of the table."""
    folder = Folder(tmp_path / "project", catalog={"type": "hadoop", "warehouse": str(tmp_path / "wh")})
    for number in (1, 2):
        folder.write_csv(f"landing/{number}.csv", ["id"], [(number,)])
        folder.run()
    metadata = tmp_path / "wh" / "shop" / "sales" / "metadata"
    versions = sorted(metadata.glob("v*.metadata.json"), key=lambda file: int(file.name[1:].split(".")[0]))
    broken, number = versions[-1], len(versions)
    (metadata / "40350862-0e5c-4d3f-9f6e-27f0d8f4a7e1.metadata.json").write_text("{")
    (metadata / f"{number + 1:05d}-0e5c.metadata.json").write_bytes(broken.read_bytes())
    truncate(broken)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(HadoopPointers, "_rename", die)
    with pytest.raises(KeyboardInterrupt):
        repair(folder.open())
    monkeypatch.undo()
    assert checks(folder.open()) == ["metadata"]
    [done] = repair(folder.open())
    assert isinstance(done, Restore)
    assert done.previous.location.endswith(f"/v{number - 1}.metadata.json")
    assert (metadata / f"v{number + 1}.metadata.json").is_file()
    folder.run()
    assert folder.rows() == [(1,), (2,)]
    assert findings(folder.open().fsck()) == []


def stones(works: Works, *names: str) -> None:
    """Load rows, each in a changeset of its own."""
    for number, name in enumerate(names, 1):
        works.load([{"id": number, "at": 1, "name": name}])


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_change_log_that_is_ahead(lost: int, make: Make) -> None:
    """Its numbers are never given to other changes, and it tells of the gap; also with no batch left."""
    works = make(order_by="at")
    stones(works, "flint", "agate", "chalk")
    broken = pointer(works.folder)
    for file in (broken, *previous(broken)[: lost - 1]):
        truncate(file)
    works.project = works.folder.open()
    done = repair(works.project)
    assert isinstance(done[0], Restore)
    assert done[0].changesets == (4 - lost, 3)
    # Of a table that nobody has published into, no head can be moved: that takes a commit.
    assert [type(each) for each in done[1:]] == ([Renumber] if lost == 3 else [])
    assert findings(works.project.fsck()) == []
    result = works.load([{"id": 3, "at": 1, "name": "opal"}])
    assert result.changeset == 5
    assert works.ops(5) == {3: "insert"}
    assert works.ops(3) == {3: "insert"}, "what was logged stays"
    assert json.loads(works.properties(CHANGES)["esker.gaps"]) == [[4, 4]]
    kept = ["flint", "agate"][: 3 - lost]
    assert [row["name"] for _, row in sorted(works.rows().items())] == [*kept, "opal"]
    assert findings(works.project.fsck()) == []


def test_a_catalog_that_was_restored_from_a_copy(make: Make) -> None:
    """The table is whole, but its log is ahead: runs stop, and a repair numbers on behind the log."""
    works = make(order_by="at")
    stones(works, "flint", "agate")
    state = pointer(works.folder)
    works.load([{"id": 3, "at": 1, "name": "chalk"}])
    point_to(works.folder, f"file:{state}")
    works.project = works.folder.open()
    assert checks(works.project) == ["log_ahead"]
    with pytest.raises(LogAhead):
        works.load([{"id": 3, "at": 1, "name": "opal"}])
    [done] = repair(works.project)
    assert isinstance(done, Renumber)
    works.project = works.folder.open()
    assert works.load([{"id": 3, "at": 1, "name": "opal"}]).changeset == 5
    assert json.loads(works.properties(CHANGES)["esker.gaps"]) == [[4, 4]]


@pytest.mark.parametrize("lost", [1, 2])
def test_a_change_log_with_a_broken_metadata_file(lost: int, make: Make) -> None:
    """What the outbox still holds is appended anew; of what it does not, the log tells a gap."""
    works = make(order_by="at")
    stones(works, "flint", "agate", "chalk")
    broken = pointer(works.folder, "works__changes")
    for file in (broken, *previous(broken)[: lost - 1]):
        truncate(file)
    works.project = works.folder.open()
    [done] = repair(works.project)
    assert str(done.table) == "shop.works__changes"
    works.load([{"id": 4, "at": 1, "name": "opal"}])
    assert works.ops(4) == {4: "insert"}
    assert works.ops(3) == {3: "insert"}
    assert works.ops(2) == ({2: "insert"} if lost == 1 else {})
    gaps = json.loads(works.properties(CHANGES).get("esker.gaps", "[]"))
    assert gaps == ([] if lost == 1 else [[2, 2]])
    assert findings(works.project.fsck()) == []


def test_a_table_and_its_change_log_that_are_both_broken(make: Make) -> None:
    """The table is first: it says what the log lacks. No number is given twice, and runs go on."""
    works = make(order_by="at")
    stones(works, "flint", "agate", "chalk", "slate")
    log = pointer(works.folder, "works__changes")
    for file in (pointer(works.folder), log, *previous(log)[:2]):
        truncate(file)
    works.project = works.folder.open()
    done = repair(works.project)
    assert [str(each.table) for each in done] == ["shop.works", "shop.works__changes"]
    assert findings(works.project.fsck()) == []
    assert works.load([{"id": 4, "at": 1, "name": "opal"}]).changeset == 6
    assert [works.ops(number) for number in (1, 3, 6)] == [{1: "insert"}, {3: "insert"}, {4: "insert"}]
    assert json.loads(works.properties(CHANGES)["esker.gaps"]) == [[2, 2], [4, 5]]
    assert findings(works.project.fsck()) == []


def test_a_quarantine_and_a_memory_of_deletes(make: Make) -> None:
    """Each of their rows is there once: also those of a failed commit, of a compaction and of the outbox."""
    works = make(order_by="at", deletes="hard", bad_rows="quarantine")
    for number in range(1, 6):
        works.load([{"id": number, "at": 1, "name": "flint"}, {"id": None, "at": 1, "name": "nobody's"}])
        works.load([{"id": number, "at": 2, "name": None, "deleted": True}, {"id": None, "at": 2}])
    tables = {"works__quarantine": ["changeset", "row"], "works__deletes": ["id"]}
    before = {name: rows_of(works, name, columns) for name, columns in tables.items()}
    assert [len(rows) for rows in before.values()] == [10, 5]
    engine = works.project.engine
    for name in tables:
        files = works.sql(f"SELECT file_path p, file_size_in_bytes n FROM lake.shop.{name}.data_files")
        failed = Attempt(engine, TableId("lake", f"shop.{name}"))
        failed.append(failed.adopt([(file.p, file.n) for file in files[:2]]), {})
        works.sql(
            f"CALL lake.system.rewrite_data_files(table => 'shop.{name}', "
            "options => map('rewrite-all', 'true'))"
        )
        broken = pointer(works.folder, name)
        for file in (broken, *previous(broken)[:3]):
            truncate(file)
    works.project = works.folder.open()
    done = repair(works.project)
    assert [type(each) for each in done] == [Restore, Reappend, Restore, Reappend]
    assert findings(works.project.fsck()) == []
    works.load([{"id": 9, "at": 1, "name": "opal"}])
    assert {name: rows_of(works, name, columns) for name, columns in tables.items()} == before
    assert findings(works.project.fsck()) == []


def rows_of(works: Works, table: str, columns: list[str]) -> list[tuple[object, ...]]:
    names = ", ".join(f"`{name}`" for name in columns)
    return [tuple(row) for row in works.sql(f"SELECT {names} FROM lake.shop.{table} ORDER BY {names}")]


def test_the_table_of_loaded_files(loaded: Folder) -> None:
    """Its rows are taken in again, by a second repair if the first is killed: no file is loaded twice."""
    broken = pointer(loaded, "sales__files")
    for file in (broken, *previous(broken)[:1]):
        truncate(file)
    project = loaded.open()
    found = project.fsck()
    [plan] = project.plan_repairs(found)
    project.repair(found, plan)
    with pytest.raises(LoadedFilesDamaged, match="sales__files"):
        loaded.run()
    assert checks(loaded.open()) == ["records"]
    [done] = repair(loaded.open())
    assert isinstance(done, Reappend)
    assert len(done.files) == 2
    loaded.write_csv("landing/4.csv", ["id"], [(4,)])
    assert loaded.run().rows.inserted == 1
    assert loaded.rows() == [(1,), (2,), (3,), (4,)]
    assert findings(loaded.open().fsck()) == []
