"""What is true of every catalog that compares before it commits."""

from __future__ import annotations

from collections.abc import Mapping

from esker.project.declaration import Declaration


class Safe(Declaration):
    """A catalog that lets one of two racing commits win and tells the other one."""

    def warnings(self) -> tuple[str, ...]:
        """Return what people should know of it before they use it."""
        return ()

    def why_not_keyed(self, table: Mapping[str, str]) -> str | None:
        """Return why rows cannot be loaded by key into a table with these properties, if so."""
        return None
