"""A project with a state database of its own."""

from __future__ import annotations

from pathlib import Path

from esker.project import Project, load_project


def project_in(folder: Path, url: str = "sqlite:///.esker/state.db") -> Project:
    """Return a project without pipelines, whose state is at an address."""
    (folder / "esker.yml").write_text(f"project: shop\nstate: {{url: '{url}'}}\n", encoding="utf-8")
    return load_project(folder)
