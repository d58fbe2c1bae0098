"""Names of tables on their way into SQL."""

from __future__ import annotations

from esker.project.types import quoted


def identifier(*parts: str) -> str:
    """Return a dotted, quoted identifier: `identifier("lake", "a.b")` gives `` `lake`.`a`.`b` ``."""
    return ".".join(quoted(name) for part in parts for name in part.split("."))
