"""Ids of records that a person names in a file."""

from __future__ import annotations

from pathlib import Path

from esker.errors import BackfillUnsuitable


def read_ids(pipeline: str, file: Path) -> tuple[str, ...]:
    """Return the ids of a file, one a line, each once. Raises BackfillUnsuitable."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = f'"{file}" cannot be read: {error}'
        raise BackfillUnsuitable(pipeline, why, "Write one id a line, in UTF-8.") from error
    found = tuple(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not found:
        raise BackfillUnsuitable(pipeline, f'"{file}" names no id.', "Write one id a line.")
    return found
