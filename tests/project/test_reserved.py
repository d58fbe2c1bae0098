"""Names that no column can have."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.errors import InvalidProject
from esker.project import load_project
from esker.project.reserved import why_reserved
from tests.folder import Folder


@pytest.mark.parametrize(
    "name", ["_file", "_POS", "_deleted", "_spec_id", "_partition", "_row_id", "_Esker_x"]
)
def test_declared_column_with_a_reserved_name(tmp_path: Path, name: str) -> None:
    """`esker check` says so, at the column's place."""
    folder = Folder(tmp_path, pipelines={"sales": Folder.files_pipeline(columns={name: "string"})})
    with pytest.raises(InvalidProject) as caught:
        load_project(folder.path)
    (problem,) = caught.value.problems
    assert problem.path.endswith(f"columns.{name}")
    assert "reserved" in problem.message or "metadata column" in problem.message


@pytest.mark.parametrize("name", ["file", "_id", "pos", "esker_x", "_files"])
def test_other_names_are_free(name: str) -> None:
    """Only whole names are taken."""
    assert why_reserved(name) is None
