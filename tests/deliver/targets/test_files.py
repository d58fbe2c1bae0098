"""Files as a target: whole, once, and under the same names each time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from esker.deliver.targets import Message, Refused, Target
from esker.errors import TargetUnavailable
from esker.project.secrets import FromEnvironment
from tests.deliver.targets.made import message, target_of
from tests.servers.moto import BUCKET, KEY, SECRET, file_system

MESSAGES = [message("a", 7, "update", title="Ä"), message("b", 8, "delete")]
EXPECTED = [
    {
        "id": "a",
        "op": "update",
        "version": 7,
        "table": "museum.works",
        "changeset": 7,
        "key": {"id": "a"},
        "body": {"title": "Ä"},
    },
    {"id": "b", "op": "delete", "version": 8, "table": "museum.works", "changeset": 8, "key": {"id": "b"}},
]


def send(target: Target, *messages: Message) -> list[Refused]:
    with target.open() as sender:
        return sender.send(messages)


def folder_of(folder: Path, **keys: Any) -> Target:
    return target_of(folder, {"type": "files", "path": "out/works", **keys})


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()]


def test_changes_are_json_lines(tmp_path: Path) -> None:
    """One file per delivery, below the project's folder."""
    assert send(folder_of(tmp_path), *MESSAGES) == []
    assert lines(tmp_path / "out/works") == EXPECTED


def test_what_is_delivered_again_is_there_once(tmp_path: Path) -> None:
    """The same changes have the same name, others another one, in the order of their changesets."""
    target = folder_of(tmp_path)
    send(target, *MESSAGES)
    send(target, *MESSAGES)
    send(target, message("c", 12, title="C"))
    names = sorted(path.name for path in (tmp_path / "out/works").iterdir())
    assert [name.rpartition("-")[0] for name in names] == [
        "museum.works-0000000007-0000000008",
        "museum.works-0000000012-0000000012",
    ]


def test_changes_as_parquet(tmp_path: Path) -> None:
    """With columns that are the same in every file."""
    assert send(folder_of(tmp_path, format="parquet"), *MESSAGES) == []
    [file] = (tmp_path / "out/works").iterdir()
    rows = pq.read_table(file).to_pylist()
    assert [(row["id"], row["op"], row["version"], row["changeset"]) for row in rows] == [
        ("a", "update", 7, 7),
        ("b", "delete", 8, 8),
    ]
    assert json.loads(rows[0]["body"]) == {"title": "Ä"}
    assert json.loads(rows[0]["key"]) == {"id": "a"}
    assert rows[1]["body"] is None


def test_what_json_does_not_have_is_refused(tmp_path: Path) -> None:
    """The others are written; when there are none, so is no file."""
    bad = message("x", year=float("nan"))
    assert [each.message for each in send(folder_of(tmp_path), bad, *MESSAGES)] == [bad]
    assert lines(tmp_path / "out/works") == EXPECTED
    assert [each.message for each in send(folder_of(tmp_path), bad)] == [bad]
    assert len(list((tmp_path / "out/works").iterdir())) == 1
    assert send(folder_of(tmp_path)) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """The delivery ends with the reason, and no half of a file is left."""
    (tmp_path / "out").write_text("a file where a folder should be")
    with pytest.raises(TargetUnavailable, match="out/works"):
        send(folder_of(tmp_path), *MESSAGES)


@pytest.mark.server
def test_changes_in_a_store(tmp_path: Path, moto: str) -> None:
    """The same files, as objects."""
    keys = {"access_key": FromEnvironment(KEY), "secret_key": FromEnvironment(SECRET)}
    store = {"type": "s3", "endpoint": moto, "path_style": True, **keys}
    to = {"type": "files", "path": f"s3://{BUCKET}/changes", "connection": "lake"}
    target = target_of(tmp_path, to, lake=store)
    send(target, *MESSAGES)
    assert send(target, *MESSAGES) == []

    from pyarrow import fs

    files = file_system(moto)
    [info] = files.get_file_info(fs.FileSelector(f"{BUCKET}/changes"))
    with files.open_input_file(info.path) as stream:
        assert [json.loads(line) for line in stream.read().splitlines()] == EXPECTED
    nowhere = target_of(tmp_path, {**to, "path": "s3://no-such-bucket/changes"}, lake=store)
    with pytest.raises(TargetUnavailable, match="no-such-bucket"):
        send(nowhere, *MESSAGES)
    assert SECRET not in repr(target)
