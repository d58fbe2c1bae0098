"""Local files are written without a checksum file and without a process for each."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from esker.engine.local_files import use_plain_files
from tests.folder import Folder

pytestmark = pytest.mark.spark


def hadoop_files(context: SparkContext) -> tuple[Any, Any]:
    jvm: Any = context._jvm
    java_context: Any = context._jsc
    return jvm, jvm.org.apache.hadoop.fs.FileSystem.get(
        jvm.java.net.URI("file:///"), java_context.hadoopConfiguration()
    )


def test_files_get_the_permissions_that_are_asked_for(folder: Folder, tmp_path: Path) -> None:
    """Also the sticky bit; there is no checksum file beside them."""
    jvm, files = hadoop_files(folder.open().engine.spark.sparkContext)
    assert files.getClass().getName() == "esker.PlainLocalFileSystem"
    path = jvm.org.apache.hadoop.fs.Path(str(tmp_path / "below" / "a.txt"))
    files.create(path, True).close()
    created = tmp_path / "below" / "a.txt"
    assert stat.S_IMODE(created.stat().st_mode) == 0o644
    assert [entry.name for entry in created.parent.iterdir()] == [created.name]
    for octal in ("600", "750", "1777"):
        files.setPermission(path, jvm.org.apache.hadoop.fs.permission.FsPermission(octal))
        assert oct(stat.S_IMODE(created.stat().st_mode)) == f"0o{octal}"


def test_folders_go_on_handing_their_group_on(folder: Folder, tmp_path: Path) -> None:
    """Teams share a warehouse by a folder whose group all that is made in it gets."""
    jvm, files = hadoop_files(folder.open().engine.spark.sparkContext)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o2775)
    files.create(jvm.org.apache.hadoop.fs.Path(str(shared / "db" / "works" / "a.txt")), True).close()
    assert stat.S_IMODE((shared / "db" / "works").stat().st_mode) == 0o2755
    assert stat.S_IMODE((shared / "db" / "works" / "a.txt").stat().st_mode) == 0o644


def test_file_system_that_was_made_anew_is_replaced_again(folder: Folder) -> None:
    """Somebody closes all of Hadoop's file systems: the next session has the same again."""
    context = folder.open().engine.spark.sparkContext
    hadoop_files(context)[1].close()
    assert hadoop_files(context)[1].getClass().getName() != "esker.PlainLocalFileSystem"
    use_plain_files(context)
    assert hadoop_files(context)[1].getClass().getName() == "esker.PlainLocalFileSystem"


def test_without_the_compiler_hadoops_own_is_used(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be compiled costs time and nothing else."""
    context = folder.open().engine.spark.sparkContext
    hadoop_files(context)[1].close()
    monkeypatch.setattr("esker.engine.local_files._SOURCE", "this is not Java")
    use_plain_files(context)
    files = hadoop_files(context)[1]
    assert files.getClass().getName() != "esker.PlainLocalFileSystem"
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    assert folder.rows() == [(1,)]
    monkeypatch.undo()
    use_plain_files(context)
