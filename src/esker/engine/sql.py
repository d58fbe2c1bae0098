"""Names and texts on their way into SQL: the only place that quotes."""

from __future__ import annotations

from esker.project.types import quoted


def identifier(*parts: str) -> str:
    """Return a dotted, quoted identifier: `identifier("lake", "a.b")` gives `` `lake`.`a`.`b` ``."""
    return ".".join(quoted(name) for part in parts for name in part.split("."))


def literal(text: str) -> str:
    """Return a text as a SQL string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
