"""What a benchmark wants of its figures. A program whose figures miss it ends with status 1."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from benchmarks.machine import measured_with


@dataclass
class Wanted:
    """What is wanted, and what has missed it so far. All figures are measured and told before the end."""

    missed: list[str] = field(default_factory=list)

    def at_least(self, what: str, figure: float, least: float) -> str:
        """Return in words what is wanted of a figure, and take note if it is less, or none at all."""
        return self._told(what, figure, f"at least {least}", is_met=figure >= least)

    def at_most(self, what: str, figure: float, most: float) -> str:
        """Return in words what is wanted of a figure, and take note if it is more, or none at all."""
        return self._told(what, figure, f"at most {most}", is_met=figure <= most)

    def end(self) -> None:
        """Say what was measured with, and what was missed: then the program ends with status 1."""
        print(measured_with(), flush=True)
        for each in self.missed:
            print(f"missed: {each}", file=sys.stderr)
        if self.missed:
            sys.exit(1)

    def _told(self, what: str, figure: float, wish: str, *, is_met: bool) -> str:
        if not is_met:
            self.missed.append(f"{what}: {figure:.2f}, wanted {wish}")
        return f"wanted {wish}"
