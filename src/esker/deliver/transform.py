"""Make the bodies of messages from rows: by a function of the user's, or as the rows are."""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa

from esker.deliver.json_values import as_json_object, id_of
from esker.errors import TransformNotFound
from esker.functions import TransformFunction
from esker.project.secrets import redact
from esker.sources.function import find_object

_Made = TypeVar("_Made")
_TOLD = 2_000
_MOMENT, _EPOCH = pa.timestamp("us", "UTC"), datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Failed:
    """A row of which no body could be made."""

    error: str
    given: Mapping[str, Any] | None = None
    """The row, unless it is what the transform was given."""


Body = Mapping[str, Any] | Failed | None
"""None: the row is not wanted in the target."""


@dataclass(frozen=True)
class Transform:
    """A function that makes bodies. Can be pickled, with the code of the project that it uses."""

    function: Callable[[Any], Any]
    per: Literal["row", "batch"]
    ids: tuple[str, ...]

    @classmethod
    def find(cls, place: str, folder: Path, ids: tuple[str, ...], *, travels: bool = True) -> Transform:
        """Return a function by `file.py:name` or `module:name`. Raises TransformNotFound.

        One that `travels` can be pickled for Spark's tasks.
        """
        with _importable(folder):
            found = find_object(place, folder, TransformNotFound)
        if not isinstance(found, TransformFunction):
            why = f"{place.rpartition(':')[2]} is not marked with @esker.transform."
            raise TransformNotFound(place, why)
        if travels:
            _send_code_along(folder)
        return cls(found.function, found.per, ids)

    def bodies(self, rows: pa.Table) -> list[Body]:
        """Return what becomes of each row."""
        if self.per == "row":
            return _of_each(rows, self._of_row)
        found: dict[int, Body] = {}
        for places in self._rounds(rows):
            piece = rows if len(places) == len(rows) else rows.take(pa.array(places, pa.int64()))
            found.update(zip(places, self._of_piece(piece), strict=True))
        return [found[place] for place in range(len(rows))]

    def _rounds(self, rows: pa.Table) -> list[list[int]]:
        """Return the places of rows so that no id comes twice together: the first change of each, the second…

        The function returns ids, which do not tell one change of a row from another.
        """
        rounds: list[list[int]] = []
        seen: Counter[str] = Counter()
        for place, row in enumerate(as_rows(rows.select(self.ids))):
            id_ = _id(row, self.ids)
            if seen[id_] == len(rounds):
                rounds.append([])
            rounds[seen[id_]].append(place)
            seen[id_] += 1
        return rounds

    def _of_piece(self, rows: pa.Table) -> list[Body]:
        try:
            return self._of_batch(rows)
        except Exception as error:
            if len(rows) == 1:
                return [Failed(_told(error))]
        # Which of them it was shows when each comes alone.
        return [body for place in range(len(rows)) for body in self._of_piece(rows.slice(place, 1))]

    def _of_row(self, row: dict[str, Any]) -> Body:
        try:
            return _checked(self.function(row))
        except Exception as error:
            return Failed(_told(error))

    def _of_batch(self, rows: pa.Table) -> list[Body]:
        made = self.function(rows)
        table = pa.Table.from_batches([made]) if isinstance(made, pa.RecordBatch) else pa.table(made)
        if missing := [name for name in self.ids if name not in table.column_names]:
            raise ValueError(f"it returns no column {missing[0]}, which identifies a row")
        bodies = {_id(row, self.ids): _checked(row) for row in as_rows(table)}
        return [bodies.get(_id(row, self.ids)) for row in as_rows(rows.select(self.ids))]


def rows_as_they_are(rows: pa.Table) -> list[Body]:
    """Return rows as the bodies of their messages."""
    return _of_each(rows, _checked)


def rows_or_failed(rows: pa.Table) -> list[dict[str, Any] | Failed]:
    """Return rows as dictionaries; of one with a value that Python does not have, what Arrow writes."""
    return _of_each(rows, _unchanged)


def shown(row: pa.Table) -> Mapping[str, Any] | None:
    """Return a table's only row for people to see, whatever is in it."""
    [found] = rows_as_they_are(row)
    return found.given if isinstance(found, Failed) else found


def _unchanged(row: dict[str, Any]) -> dict[str, Any]:
    return row


def _of_each(rows: pa.Table, make: Callable[[dict[str, Any]], _Made]) -> list[_Made | Failed]:
    """Return what is made of each row; a row with a value that Python does not have has failed."""
    try:
        found = as_rows(rows)
    except (OverflowError, ValueError) as error:
        if len(rows) == 1:
            texts = {name: _text(rows.column(name)) for name in rows.column_names}
            return [Failed(f"it cannot be read in Python: {error}", texts)]
        middle = len(rows) // 2
        return _of_each(rows.slice(0, middle), make) + _of_each(rows.slice(middle), make)
    return [make(row) for row in found]


def _text(column: pa.ChunkedArray) -> str | None:
    """Return a column's only value as Arrow writes it."""
    try:
        found: str | None = column.cast(pa.string())[0].as_py()
    except pa.ArrowException:
        return str(column)
    return found


def as_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Return rows as dictionaries, also what is a map in them."""
    names = rows.column_names
    return [dict(zip(names, row, strict=True)) for row in zip(*map(_values, rows.columns), strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    if column.type == _MOMENT:
        # As Arrow does it, it takes longer than all the rest of a row.
        microseconds = column.cast(pa.int64()).to_pylist()
        return [None if each is None else _EPOCH + timedelta(0, 0, each) for each in microseconds]
    # There is a fast way for plain values, but none that asks about maps.
    plain: list[Any] = (
        column.to_pylist(maps_as_pydicts="lossy") if pa.types.is_nested(column.type) else column.to_pylist()
    )
    return plain


def _id(row: Mapping[str, Any], ids: tuple[str, ...]) -> str:
    return id_of(*(row[name] for name in ids))


def _checked(made: Any) -> Mapping[str, Any] | None:
    if made is None:
        return None
    if not isinstance(made, Mapping):
        raise TypeError(f"it returns {type(made).__name__}, and not a dictionary or None")
    return as_json_object(made)


def _told(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    # Before it is cut: half a secret would not be known as one.
    return redact(f"{type(error).__name__}: {error}{place}")[:_TOLD]


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let modules of a project be imported by their names."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _send_code_along(folder: Path) -> None:
    """Let code of a project go to Spark's tasks with the function: its files may not be there."""
    from pyspark import cloudpickle  # noqa: PLC0415 (who sends from this process alone may have no PySpark)

    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file is None or not Path(file).is_relative_to(folder) or "site-packages" in file:
            continue
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
