"""What every kind of target declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from esker.project.declaration import Declaration, MistakeAt
from esker.project.suggest import closest


class TargetDeclaration(Declaration):
    """A target, as users declare it."""

    type: str
    reaches: ClassVar[tuple[str, ...]] = ()
    """Types of connection that it may name."""

    @property
    def connection_name(self) -> str | None:
        """The connection that it names, if it does."""
        found = getattr(self, "connection", None)
        return found if isinstance(found, str) else None

    def check_connection(self, connections: Mapping[str, Declaration], place: tuple[str, ...]) -> None:
        """Raise MistakeAt for a connection that is not there or of another kind.

        `place` is where the target stands in the project file.
        """
        if self.connection_name is None:
            return
        kinds = {name: str(getattr(each, "type", "")) for name, each in connections.items()}
        suitable = [name for name, kind in kinds.items() if kind in self.reaches]
        if self.connection_name in suitable:
            return
        wanted = " or ".join(self.reaches)
        there = kinds.get(self.connection_name)
        if there is not None:  # no slip of the pen: whatever would do is named
            named = f"there is {', '.join(suitable)}" if suitable else "declare one below connections:"
            hint = f"it is of type {there}; {named}"
        else:
            guess = closest(self.connection_name, suitable)
            hint = f'did you mean "{guess}"?' if guess else "declare it below connections:"
        raise MistakeAt(
            (*place, "connection"),
            f'"{self.connection_name}" is no connection of type {wanted}; {hint}',
        )
