"""`esker init`."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal


@pytest.mark.parametrize("name", ["shop", "my shop", "2026 Größe"])
def test_a_new_project_can_be_checked_at_once(terminal: Terminal, tmp_path: Path, name: str) -> None:
    """The files are named, and the next command can be copied into a shell, whatever the folder's name."""
    answer = terminal.ask("init", tmp_path / name)
    assert answer.status == 0
    assert f"wrote {tmp_path / name}/esker.yml" in answer.stdout.splitlines()
    following = answer.stdout.splitlines()[-1].removeprefix("Next: ")
    assert shlex.split(following)[:2] == ["cd", str(tmp_path / name)]
    assert terminal.ask("check", "--project", tmp_path / name).status == 0


def test_this_folder_needs_no_cd(terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an argument the project is made here."""
    monkeypatch.chdir(tmp_path)
    answer = terminal.ask("init")
    assert answer.stdout.splitlines()[-1] == "Next: esker run && esker show shop.orders"
    assert terminal.ask("check").status == 0


def test_the_document_lists_the_files(terminal: Terminal, tmp_path: Path) -> None:
    """Programs learn what was written."""
    answer = terminal.ask("init", tmp_path / "shop", "--json")
    assert answer.document["status"] == "succeeded"
    assert all(Path(file).is_file() for file in answer.document["files"])


def test_a_second_init_is_refused(terminal: Terminal, shop: Path) -> None:
    """Nothing is overwritten."""
    answer = terminal.ask("init", shop, "--json")
    assert (answer.status, answer.error["code"]) == (2, "ESK-PROJECT-006")


def test_a_folder_that_cannot_be_made_is_no_mistake_of_esker(terminal: Terminal, tmp_path: Path) -> None:
    """A file in the way is told as what it is."""
    (tmp_path / "file").write_text("")
    answer = terminal.ask("init", tmp_path / "file" / "shop", "--json")
    assert (answer.status, answer.error["code"]) == (2, "ESK-PROJECT-000")
    assert "Not a directory" in answer.error["reason"]
