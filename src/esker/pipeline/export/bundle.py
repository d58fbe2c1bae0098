"""What is written for a platform that runs pipelines."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Bundle:
    """Files for a platform."""

    files: dict[str, str | bytes]
    variables: tuple[str, ...] = ()
    """Variables that the platform must supply."""
    notes: tuple[str, ...] = field(default=())
    """What a person should know."""
