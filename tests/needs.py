"""What a test needs from the machine: skipped elsewhere, an error in CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest


def missing(part: str, how: str) -> NoReturn:
    """Say which part is missing and how to get it. With CI=true that is a failure."""
    message = f"{part} is missing; {how}"
    if os.environ.get("CI") == "true":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def found(path: str) -> str | None:
    """Return where a program of this checkout is, if it is installed."""
    place = Path(__file__).parents[1] / path
    return str(place) if place.is_file() else None
