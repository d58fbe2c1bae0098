"""Ids that a person names in a file: of records of a source, or of rows that a consumer is told of."""

from __future__ import annotations

from pathlib import Path

from esker.deliver.json_values import how_ids_are_written, key_texts
from esker.errors import BackfillUnsuitable, ReindexUnsuitable
from esker.project import Project


def read_ids(pipeline: str, file: Path) -> tuple[str, ...]:
    """Return the ids of a file, one a line, each once. Raises BackfillUnsuitable."""
    try:
        return tuple(_lines(file))
    except ValueError as error:
        raise BackfillUnsuitable(pipeline, str(error), "Write one id a line, in UTF-8.") from error


def read_row_ids(project: Project, consumer: str, file: Path) -> tuple[str, ...]:
    """Return the ids of a file by which a consumer's rows are told apart. Raises ReindexUnsuitable."""
    declared = project.consumer(consumer)
    columns = declared.ids_of(project.pipeline(declared.source))
    try:
        lines = _lines(file)
    except ValueError as error:
        raise ReindexUnsuitable(consumer, str(error), "Write one id a line, in UTF-8.") from error
    for line, number in lines.items():
        try:
            key_texts(line, len(columns))
        except ValueError as error:
            why = f'line {number} of "{file}": {error}.'
            raise ReindexUnsuitable(consumer, why, how_ids_are_written(columns)) from None
    return tuple(lines)


def _lines(file: Path) -> dict[str, int]:
    """Return the texts of a file with the line of each, or raise ValueError."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f'"{file}" cannot be read: {error}') from error
    found: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if text := line.strip():
            found.setdefault(text, number)
    if not found:
        raise ValueError(f'"{file}" names no id.')
    return found
