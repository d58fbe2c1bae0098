"""`esker init` writes a project that is right, and touches nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from esker.errors import ProjectError, ProjectExists
from esker.project import load_project
from esker.project.json_schema import json_schema
from esker.project.scaffold import write_sample


def test_the_sample_is_a_project(tmp_path: Path) -> None:
    """Two pipelines with files to load, a schema for editors, and secrets kept out of git."""
    written = write_sample(tmp_path / "shop")
    project = load_project(tmp_path / "shop")
    assert (project.project, list(project.pipelines)) == ("shop", ["orders", "customers"])
    for pipeline in project.pipelines.values():
        assert list((tmp_path / "shop").glob(pipeline.source.reads))
    assert {".env", ".esker/"} <= set((tmp_path / "shop" / ".gitignore").read_text().split())
    assert json.loads((tmp_path / "shop" / "esker.schema.json").read_text()) == json_schema()
    assert sorted(written) == sorted(path for path in (tmp_path / "shop").rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("My Shop", "my_shop"),
        ("2026-sales", "sales"),
        ("2026", "project"),
        ("Größe", "gr__e"),
        ("日本", "project"),
        ("a" * 100, "a" * 63),
        ("_x", "x"),
        ("a.b-c", "a_b_c"),
        ("{name}", "name_"),
    ],
)
def test_any_folder_name_gives_a_valid_project_name(tmp_path: Path, folder: str, name: str) -> None:
    """Whatever a folder is called, the project in it is right."""
    write_sample(tmp_path / folder)
    assert load_project(tmp_path / folder).project == name


def test_this_folder_gives_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`esker init` without an argument names the project after the folder it stands in."""
    (tmp_path / "here" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here" / "below")
    write_sample(Path())
    assert load_project().project == "below"


def test_missing_parents_are_made(tmp_path: Path) -> None:
    """A new project may lie deep."""
    write_sample(tmp_path / "a" / "b" / "c")
    assert load_project(tmp_path / "a" / "b" / "c").project == "c"


@pytest.mark.parametrize("found", ["esker.yml", "notes.txt", ".git"])
def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, found: str) -> None:
    """Nothing is ever overwritten."""
    (tmp_path / found).write_text("mine")
    with pytest.raises(ProjectExists, match="is not empty") as caught:
        write_sample(tmp_path)
    assert found in caught.value.reason
    assert [path.name for path in tmp_path.iterdir()] == [found]
    assert (tmp_path / found).read_text() == "mine"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """Neither on a file nor below one can a project be made; both are told plainly."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ProjectExists, match="is not empty"):
        write_sample(tmp_path / "file")
    with pytest.raises(ProjectError, match="cannot write") as caught:
        write_sample(tmp_path / "file" / "below")
    assert "Not a directory" in caught.value.reason
