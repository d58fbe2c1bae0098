"""Open a project for a verb that needs Spark."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from esker.engine.pins import check_spark
from esker.project import load_project

if TYPE_CHECKING:
    from esker.pipeline.api import OpenProject


def open_project(folder: Path | None, env: str | None, pipelines: Sequence[str] = ()) -> OpenProject:
    """Return the project after its file and the pipelines' names have been checked.

    The checks come before PySpark is imported: who mistypes a name is answered at once.
    """
    project = load_project(folder or Path(), env)
    for name in pipelines:
        project.check_name(name)
    check_spark()
    # Py4J tells broken connections to the root logger, which prints them unless somebody listens. What
    # matters of them reaches people as an error of ours.
    logging.getLogger().addHandler(logging.NullHandler())
    from esker.pipeline.api import OpenProject

    return OpenProject(project)
