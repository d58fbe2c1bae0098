"""What `esker export` writes for a reader, and a Python program of it run in this process."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

from esker.pipeline.export import export_reader
from esker.project import load_project


def text_for(reader: str, project: Path) -> str:
    """Return what is written for a reader. Raises CannotExport."""
    return export_reader(load_project(project), reader).text


def run_for(reader: str, project: Path) -> dict[str, Any]:
    """Run the program that is written for a reader, and return its names. Raises CannotExport."""
    text = text_for(reader, project)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(text, encoding="utf-8")
        return runpy.run_path(str(program))
