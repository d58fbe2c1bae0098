"""Check what Esker needs, piece by piece, and say how to mend what fails.

What is looked at with PySpark is in `doctor_spark.py`; this file also runs where PySpark is missing.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from esker.engine.java import find_java
from esker.engine.pins import check_spark
from esker.errors import EskerError
from esker.ledger.state import State
from esker.project import Project


@dataclass(frozen=True)
class Finding:
    """One thing that was checked."""

    check: str
    ok: bool
    detail: str
    remedy: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"check": self.check, "ok": self.ok, "detail": self.detail, "remedy": self.remedy}


def examine(project: Project, patience: int = 60) -> Iterator[Finding]:
    """Check Python, Java, PySpark, state database, jars, stores, Spark and catalogs, in this order.

    What depends on a failed piece is not tried. Spark gets `patience` seconds for a first small job.
    """
    yield Finding("python", True, platform.python_version())
    basis = [checked("pyspark", check_spark)]
    if basis[0].ok:  # which Java is suitable depends on it
        basis.append(
            checked("java", lambda: "Java {0.version} from {0.origin} ({0.home})".format(find_java()))
        )
    yield from basis
    yield checked("state", lambda: _state(project))
    if not all(finding.ok for finding in basis):
        return
    from esker.pipeline.doctor_spark import examine_with_spark  # noqa: PLC0415 (PySpark)

    yield from examine_with_spark(project, patience)


def checked(check: str, examine_piece: Callable[[], str]) -> Finding:
    """Return what a piece says of itself, or its error."""
    try:
        return Finding(check, True, examine_piece())
    except EskerError as error:
        detail = f"{error.message}: {error.reason}" if error.reason else error.message
        return Finding(check, False, f"{error.code} {detail}", error.remedy)


def _state(project: Project) -> str:
    State.open(project).close()
    return project.state.url
