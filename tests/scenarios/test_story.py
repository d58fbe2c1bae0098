"""Whole stories, told with the commands that a user types."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command import CHILD_SPARK, SHORT_LIVED, esker, finish, start
from tests.folder import Folder
from tests.needs import missing

pytestmark = pytest.mark.process


def test_new_project_runs_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`esker init x && esker run` loads its sample, `show` prints it, a second run loads nothing."""
    for name, value in SHORT_LIVED.items():
        monkeypatch.setenv(name, value)
    project = tmp_path / "my shop"
    made = subprocess.run(
        [Path(sys.executable).with_name("esker"), "init", project],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "esker run" in made.stdout
    first = esker(project, "run", "--json")
    assert first.status == 0, first.stderr
    assert [(p["pipeline"], p["rows"]["inserted"]) for p in first.document["pipelines"]] == [
        ("orders", 10),
        ("customers", 6),
    ]
    assert [p["rows"]["read"] for p in esker(project, "run", "--json").document["pipelines"]] == [0, 0]

    shown = esker(project, "show", "shop.orders", "--where", "placed_on >= date '2026-11-01'")
    assert shown.status == 0
    assert "reads 1 of 2 files" in shown.stdout
    assert "A-1010" in shown.stdout
    planned = esker(project, "plan")
    assert planned.stdout.count("nothing to do") == 2
    status = esker(project, "status", "--json").document["pipelines"]
    assert [line["status"] for line in status] == ["succeeded", "succeeded"]
    # orders has `every: 15m` and has just run; customers has no schedule.
    due = esker(project, "run", "--due")
    assert (due.status, due.stdout.strip()) == (0, "nothing is due")


def test_interrupted_load_publishes_nothing_and_goes_on(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a load: exit status 130, a clear message, nothing half loaded."""
    folder = Folder(tmp_path / "project", spark=CHILD_SPARK)
    rows = "".join(f"{number},{'some text ' * 5}{number}\n" for number in range(600_000))
    folder.write("landing/a.csv", "id,text\n" + rows)
    folder.change(columns={"id": "bigint", "text": "string"})
    process = start(folder.path, "run")
    assert process.stderr is not None
    for line in process.stderr:
        if "reading" in line:
            break
    time.sleep(1)  # in the middle of writing; the assertions hold wherever it is
    process.send_signal(signal.SIGINT)
    answer = finish(process)
    assert answer.status == 130, answer.stderr
    assert "interrupted" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert esker(folder.path, "status", "--json").document["pipelines"][0]["status"] == "failed"

    again = esker(folder.path, "run", "--json")
    assert again.status == 0, again.stderr
    assert again.document["pipelines"][0]["rows"]["inserted"] == 600_000
    assert again.document["pipelines"][0]["changeset"] == 1


def test_full_disk_publishes_nothing_and_goes_on(tmp_path: Path) -> None:
    """No space left in the warehouse: a clear message; with space again the next run goes on."""
    warehouse = tmp_path / "small"
    warehouse.mkdir()
    # Mounted for the holder and those whom it lets in, and gone with it, however this test ends.
    holder = subprocess.Popen(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            'mount -t tmpfs -o size=3m tmpfs "$0" && echo ready && cat',
            warehouse,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        if holder.stdout.readline() != "ready\n":
            missing("the right to mount a small file system", "run the tests as root")
        inside = ("nsenter", "--mount", f"--target={holder.pid}")
        folder = Folder(
            tmp_path / "project", spark=CHILD_SPARK, catalog={"type": "sqlite", "warehouse": str(warehouse)}
        )
        folder.write_csv("landing/a.csv", ["id"], [(1,)])
        assert esker(folder.path, "run", under=inside).status == 0
        noise = "".join(f"{number},{os.urandom(64).hex()}\n" for number in range(60_000))
        folder.write("landing/b.csv", "id,text\n" + noise)
        answer = esker(folder.path, "run", "--json", under=inside)
        assert answer.status == 1
        assert answer.error["code"] == "ESK-ENGINE-007", json.dumps(answer.error)
        assert answer.document["pipelines"][0]["changeset"] == 1

        subprocess.run([*inside, "mount", "-o", "remount,size=64m", warehouse], check=True)
        again = esker(folder.path, "run", "--json", under=inside).document["pipelines"][0]
        assert (again["rows"]["inserted"], again["changeset"]) == (60_000, 2)
