"""What every kind of source declares."""

from __future__ import annotations

from typing import Any

from esker.project.declaration import Declaration
from esker.project.sources.windows import WindowSettings


class SourceDeclaration(Declaration):
    """A source, as users declare it. Each kind says what it reads, and what its positions belong to."""

    type: str

    @property
    def reads(self) -> str:
        """What it reads, for people."""
        raise NotImplementedError

    @property
    def fingerprint(self) -> str:
        """Tells sources apart whose positions mean different things. No secret, nothing that may change."""
        return self.type

    @property
    def jars(self) -> tuple[str, ...]:
        """The jars that Spark needs for it, by their names in the lock file."""
        return ()

    def reads_table(self, name: str) -> bool:
        """Tell whether it reads a table of the project: whoever writes that runs before."""
        return False

    @property
    def tables(self) -> tuple[str, ...]:
        """The Iceberg tables that it reads, as far as that can be seen without Spark."""
        return ()

    def check_mode(self, mode: str) -> None:
        """Raise MistakeAt, seen from the pipeline, for a mode in which it would lose or repeat rows."""

    def warnings(self) -> tuple[str, ...]:
        """Return what people should know of it before they use it."""
        return ()

    @property
    def windows(self) -> WindowSettings | None:
        """How it is asked by time; None where it is not."""
        found = getattr(self, "window", None)
        return found if isinstance(found, WindowSettings) else None


class PluggedInSource(SourceDeclaration):
    """A kind of source that another package offers, by an entry point of the group `esker.sources`."""

    def open(self, opening: Any) -> Any:
        """Return its reader (`esker.sources.Reader`). What needs Spark is imported here, not before."""
        raise NotImplementedError
