"""Open a project for a verb that needs Spark, or for one that only reads tables."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from esker.engine.pins import check_spark
from esker.project import load_project

if TYPE_CHECKING:
    from esker.pipeline.api import OpenProject
    from esker.pipeline.reading import ReadingProject
    from esker.pipeline.running import RunningProject
    from esker.project import Project


def open_project(folder: Path | None, env: str | None, pipelines: Sequence[str] = ()) -> OpenProject:
    """Return the project after its file and the pipelines' names have been checked.

    The checks come before PySpark is imported: who mistypes a name is answered at once.
    """
    project = _checked(folder, env, pipelines)
    from esker.pipeline.api import OpenProject

    return OpenProject(project)


def open_to_run(folder: Path | None, env: str | None, pipelines: Sequence[str] = ()) -> RunningProject:
    """Return the project, checked like this, for runs: they import PySpark when they have something to do."""
    project = _checked(folder, env, pipelines)
    from esker.pipeline.running import RunningProject

    return RunningProject(project)


def _checked(folder: Path | None, env: str | None, pipelines: Sequence[str]) -> Project:
    project = load_project(folder or Path(), env)
    for name in pipelines:
        project.check_name(name)
    check_spark()
    # Py4J tells broken connections to the root logger, which prints them unless somebody listens. What
    # matters of them reaches people as an error of ours.
    logging.getLogger().addHandler(logging.NullHandler())
    return project


def open_to_deliver(folder: Path | None, env: str | None) -> ReadingProject:
    """Return the project for deliveries, which start Spark only where they need it."""
    logging.getLogger().addHandler(logging.NullHandler())  # as above, for those that do
    return open_to_read(folder, env)


def open_to_read(folder: Path | None, env: str | None) -> ReadingProject:
    """Return the project for reading without Spark, which would take seconds to start."""
    from esker.pipeline.reading import ReadingProject

    return ReadingProject.at(folder or Path(), env)
