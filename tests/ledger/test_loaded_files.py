"""The record of loaded files: exact, whatever else stands in it."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from esker.engine.iceberg import rounds
from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.lookup import live_rows
from esker.engine.iceberg.table import TableId
from esker.errors import LoadedFilesDamaged, PublishConflict
from esker.ledger import append_once, loaded_files, upkeep
from esker.ledger.file_versions import Compared, FileVersion
from esker.ledger.loaded_files import LoadedFiles
from esker.sources.files.reader import FilesReader
from esker.sources.source import Opening, Slice
from tests.folder import Folder

pytestmark = pytest.mark.spark
FILES = TableId("lake", "shop.sales__files")


def version(path: str, size: int = 1) -> FileVersion:
    return FileVersion(path, size, 1_700_000_000_000_000_000)


@pytest.fixture
def files(folder: Folder) -> LoadedFiles:
    engine = folder.open().engine
    engine.open_catalog("lake")
    return LoadedFiles(engine, FILES, "sales")


def record(files: LoadedFiles, batch: str, previous: str | None, *versions: FileVersion) -> None:
    files.record(versions, batch=batch, previous=previous, run="run")


def test_only_files_on_the_chain_count_and_the_newest_version_wins(files: LoadedFiles) -> None:
    """Batches that were never published, and other pipelines' batches, mean nothing."""
    record(files, "one", None, version("a"), version("b"), version("not listed"))
    record(files, "two", "one", version("a", 2))
    record(files, "three", "two", version("a", 3), version("c"))
    record(files, "stopped", "two", version("b", 9), version("d"))
    record(LoadedFiles(files.engine, FILES, "other"), "two", "one", version("e"))
    listed = [version("a", 3), version("b"), version("c"), version("d"), version("e"), version("new")]
    assert files.compare("three", listed) == Compared(frozenset({"d", "e", "new"}), {})
    assert files.compare("two", listed) == Compared(frozenset({"c", "d", "e", "new"}), {"a": version("a", 2)})
    assert files.compare(None, listed).fresh == {"a", "b", "c", "d", "e", "new"}
    assert files.compare("three", []) == Compared(frozenset(), {})
    assert set(files.upto("three")) == {"a", "b", "c", "not listed"}


def test_another_time_is_another_version(files: LoadedFiles) -> None:
    """Size and modification time both count, to the nanosecond."""
    record(files, "one", None, version("a"), version("b"))
    later = FileVersion("a", 1, version("a").modified + 1)
    assert files.compare("one", [later, version("b")]) == Compared(frozenset(), {"a": version("a")})


def test_a_gap_in_the_chain_is_named(files: LoadedFiles) -> None:
    """Which files were loaded would be unknown: the batch that is not recorded is named."""
    with pytest.raises(LoadedFilesDamaged, match="one"):
        files.compare("one", [version("a")])
    record(files, "three", "two", version("a"))
    for asked, lacking in (("three", "two"), ("four", "four")):
        with pytest.raises(LoadedFilesDamaged, match=lacking):
            files.compare(asked, [version("a")])
    record(files, "two", "three", version("a"))
    with pytest.raises(LoadedFilesDamaged):
        files.compare("three", [version("a")])


@pytest.mark.parametrize("runs", [60, pytest.param(1000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("mode", ["append", "sync"])
def test_the_last_run_costs_what_the_tenth_did(
    files: LoadedFiles, monkeypatch: pytest.MonkeyPatch, mode: str, runs: int
) -> None:
    """Files, manifests and snapshots stay few, and so do rows where each batch takes the place of all."""
    monkeypatch.setattr(upkeep, "KEPT_FOR", timedelta())
    monkeypatch.setattr(loaded_files, "KEPT_FOR", timedelta())
    sql = files.engine.spark.sql
    previous: str | None = None
    most: Counter[str] = Counter()
    for number in range(runs):
        batch = f"batch-{number:04}"
        names = [f"path-{number}"] if mode == "append" else [f"path-{place}" for place in range(3)]
        before = previous if mode == "append" else None
        if number % 2 == 0:
            record(files, f"stopped-{number:04}", before, version("stopped"))
        if files.record(map(version, names), batch=batch, previous=before, run="run"):
            files.put_together(partial(str, batch))
        previous = batch
        attempt = Attempt(files.engine, FILES)
        most |= Counter(files=attempt.data_files, rows=attempt.files.rows)
        if number % 15 == 14:
            (snapshots,) = sql(f"SELECT count(*) FROM {FILES.sql}.snapshots").collect()
            (manifests,) = sql(f"SELECT count(*) FROM {FILES.sql}.manifests").collect()
            most |= Counter(snapshots=snapshots[0], manifests=manifests[0])
    assert most["files"] <= upkeep.MANY_FILES + 1
    assert most["manifests"] <= upkeep.MANY_FILES + 2
    assert most["snapshots"] <= 2 * upkeep.MANY_FILES + 2
    if mode == "append":
        assert set(files.upto(previous)) == {f"path-{number}" for number in range(runs)}
        assert most["rows"] <= runs + 2 * upkeep.MANY_FILES
    else:
        assert set(files.upto(previous)) == {f"path-{place}" for place in range(3)}
        assert most["rows"] <= 3 * 3 * upkeep.MANY_FILES
    live = Attempt(files.engine, FILES).files.data
    (folder,) = {Path(file.path.removeprefix("file:")).parent for file in live}
    assert len(list(folder.glob("*.parquet"))) <= 3 * upkeep.MANY_FILES, "what is expired is deleted"


def test_what_is_put_together_meanwhile_is_left_alone(
    files: LoadedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else's batch arrives while the files are read: nothing is lost, the next time does it."""
    monkeypatch.setattr(upkeep, "MANY_FILES", 3)
    for number in range(3):
        record(files, f"{number}", f"{number - 1}" if number else None, version(f"path-{number}"))

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.setattr(upkeep, "live_rows", live_rows)
        record(LoadedFiles(files.engine, FILES, "other"), "theirs", None, version("theirs"))
        return live_rows(*arguments)

    monkeypatch.setattr(upkeep, "live_rows", meanwhile)
    files.put_together(lambda: "2")
    assert Attempt(files.engine, FILES).data_files == 4
    files.put_together(lambda: "2")
    assert Attempt(files.engine, FILES).data_files == 1
    assert set(files.upto("2")) == {"path-0", "path-1", "path-2"}
    assert set(LoadedFiles(files.engine, FILES, "other").upto("theirs")) == {"theirs"}


def test_who_was_overtaken_leaves_the_batches_of_others(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process sleeps behind its publish, and wakes long after others went on: they are not spare."""
    folder.write_csv("landing/0.csv", ["id"], [(0,)])
    overtaken = folder.run().position["to"]
    assert overtaken is not None
    for number in (1, 2):
        folder.write_csv(f"landing/{number}.csv", ["id"], [(number,)])
        folder.run()
    monkeypatch.setattr(upkeep, "MANY_FILES", 3)
    monkeypatch.setattr(loaded_files, "KEPT_FOR", timedelta())
    monkeypatch.setattr(loaded_files, "_SPARE", 0)
    engine = folder.open().engine
    engine.open_catalog("lake")
    reader = FilesReader.of(Opening(engine, "sales", engine.project.pipeline("sales"), FILES))
    reader.many.add(overtaken["batch"])
    reader.published(Slice(None, overtaken, overtaken["batch"], 0, "1 file", (), 1))
    assert Attempt(engine, FILES).data_files == 1, "it was put together"
    assert folder.run().rows.read == 0
    assert len(folder.rows()) == 3


def test_a_long_chain_is_walked(files: LoadedFiles) -> None:
    """As many batches as a pipeline makes in a fortnight of minutes."""
    record(files, "batch-0", None, version("path-0"))
    files.engine.spark.sql(
        f"INSERT INTO {FILES.sql} SELECT 'sales', concat('batch-', id), concat('batch-', id - 1), "
        "concat('path-', id), id, 0, 'run', current_timestamp() FROM range(1, 20000)"
    )
    listed = [version("path-0"), version("path-12345"), version("path-20000")]
    found = files.compare("batch-19999", listed)
    assert found.fresh == {"path-20000"}
    assert {path: file.size for path, file in found.changed.items()} == {"path-12345": 12345}


def _swaps(monkeypatch: pytest.MonkeyPatch, *, land: bool, fail: int) -> list[float]:
    """Let the next swaps fail, whether they land or not; return the pauses that follow."""
    swap = Attempt.swap
    left = fail
    pauses: list[float] = []

    def broken(self: Attempt) -> None:
        nonlocal left
        left -= 1
        if land or left < 0:
            swap(self)
        if left >= 0:
            raise SwapFailed("RESTException", "connection closed")

    monkeypatch.setattr(Attempt, "swap", broken)
    monkeypatch.setattr(rounds, "sleep", pauses.append)
    return pauses


def _batches(files: LoadedFiles) -> list[Any]:
    return [row.batch for row in files.engine.spark.table(FILES.sql).collect()]


def test_recording_waits_longer_and_longer(files: LoadedFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever collides comes back later; in the end the files are recorded, once."""
    pauses = _swaps(monkeypatch, land=False, fail=8)
    record(files, "one", None, version("a"))
    assert pauses == [0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.0, 2.0]
    assert _batches(files) == ["one"]


def test_a_lost_answer_to_the_last_try_is_found(files: LoadedFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last try comes a last look: what landed is no conflict."""
    monkeypatch.setattr(append_once, "_TRIES", 1)
    pauses = _swaps(monkeypatch, land=True, fail=1)
    record(files, "one", None, version("a"))
    assert len(pauses) == 1
    assert _batches(files) == ["one"]


def test_recording_gives_up(files: LoadedFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that always moves ends with a conflict that says how often it was tried."""
    monkeypatch.setattr(append_once, "_TRIES", 3)
    _swaps(monkeypatch, land=False, fail=99)
    with pytest.raises(PublishConflict, match="sales__files"):
        record(files, "one", None, version("a"))
    assert _batches(files) == []
