"""A cache folder for tests, with the jars that this machine already has."""

from __future__ import annotations

from pathlib import Path

from esker.engine.jars import provide_jars


def prepare_cache(folder: Path, *names: str) -> Path:
    """Make a cache that holds the named jars and no others; fetch them first where they are missing."""
    (folder / "jars").mkdir(parents=True)
    for jar in provide_jars(names, {}, folder / "fetch.log") if names else ():
        (folder / "jars" / jar.name).symlink_to(jar)
    return folder
