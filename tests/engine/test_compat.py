"""Spark interfaces newer than 3.5 stand in one file."""

from __future__ import annotations

import re
from pathlib import Path

import esker

NEWER = re.compile(r"\.(toArrow|mergeInto|try_cast|addArtifact|transpose|lateralJoin|asTable)\(|arrow_udf")


def test_newer_interfaces_are_used_in_compat_only() -> None:
    """Platforms with Spark 3.5 need one file changed, not a search through all."""
    package = Path(esker.__file__).parent
    users = {
        str(path.relative_to(package)) for path in package.rglob("*.py") if NEWER.search(path.read_text())
    }
    assert users == {"engine/compat.py"}
