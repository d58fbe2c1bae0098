"""The rows of data files, as the table has them: columns by field id, deleted rows left out.

One file after the other, some thousand rows at a time: memory does not grow with the file.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import isnan
from struct import pack
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc
from pyiceberg.conversions import from_json, to_json

# PyIceberg's own scan holds all rows of a file, and of all files that it reads at once. What puts a file's
# columns into the table's form is private there; the package is pinned to one minor version.
from pyiceberg.io.pyarrow import _to_requested_schema, pyarrow_to_schema, schema_to_pyarrow
from pyiceberg.schema import Schema, prune_columns
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import ListType, MapType, NestedField, PrimitiveType
from pyroaring import BitMap64

from esker.engine.iceberg.deleted import positions_of
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.store import Store, explained
from esker.errors import NotWithoutSpark

_ROWS = 16_384
"""Rows at a time."""
_EQUALITY = 2
_Values = tuple[list[str], set[tuple[Any, ...]]]
"""Columns, and the values in them by which rows are deleted."""
_FILES_OF_VALUES = 256
"""Files of such values that a reader remembers: many data files have them in common."""
_Batches = Generator[tuple[int, pa.RecordBatch], None, None]
"""Rows, and the position of the first of them in the file."""


@dataclass(frozen=True)
class Part:
    """A data file, and the delete files that concern it: plain values."""

    path: str
    format: str
    records: int
    size: int
    deletes: tuple[FileEntry, ...] = ()
    constants: Mapping[int, Any] = field(default_factory=dict)
    """Values by field id that its partition tells: files that were adopted may lack these columns."""

    @classmethod
    def of(cls, metadata: TableMetadata, file: FileEntry, deletes: Sequence[FileEntry] = ()) -> Part:
        """Return a file of a snapshot."""
        constants = _constants(metadata, file)
        return cls(file.path, file.format, file.records, file.size, tuple(deletes), constants)

    def as_json(self, metadata: TableMetadata) -> dict[str, Any]:
        """Return it as a value of JSON; `from_json` is the way back."""
        document: dict[str, Any] = {"path": self.path, "rows": self.records, "bytes": self.size}
        if self.format != "parquet":
            document["format"] = self.format
        if self.constants:
            document["partition"] = {
                str(number): to_json(_type(metadata, number), value)
                for number, value in self.constants.items()
            }
        if self.deletes:
            document["deletes"] = [_delete_as_json(delete) for delete in self.deletes]
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any], metadata: TableMetadata) -> Part:
        return cls(
            document["path"],
            document.get("format", "parquet"),
            document["rows"],
            document["bytes"],
            tuple(_delete_from_json(delete) for delete in document.get("deletes", ())),
            {
                int(number): from_json(_type(metadata, int(number)), value)
                for number, value in document.get("partition", {}).items()
            },
        )


class Wanted(Protocol):
    """Tells of groups of rows of a Parquet file whether they must be read."""

    def may_be_in(self, group: pq.RowGroupMetaData, columns: Mapping[str, int]) -> bool:
        """Tell whether some row of a group may be wanted; `columns` are field ids by the file's names."""


@dataclass(frozen=True)
class Within:
    """A range of whole numbers, both ends included, in which the values of a column must lie."""

    column: str
    low: int
    high: int

    def may_be_in(self, group: pq.RowGroupMetaData, columns: Mapping[str, int]) -> bool:
        """Tell whether some row of a group may lie inside; what the group does not tell may be anything."""
        for number in range(group.num_columns):
            column = group.column(number)
            if column.path_in_schema == self.column:
                known = column.statistics
                if known is None or not known.has_min_max:
                    return True
                return bool(known.min <= self.high and known.max >= self.low)
        return True


@dataclass(frozen=True)
class RowReader:
    """Reads data files of one table as rows with certain columns."""

    table: str
    metadata: TableMetadata
    store: Store
    schema: Schema

    @cached_property
    def arrow(self) -> pa.Schema:
        """The columns that come back."""
        return schema_to_pyarrow(self.schema, include_field_ids=False)

    def read(self, part: Part, within: Wanted | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a data file that are not deleted.

        Groups of rows that lie outside of `within` are left out as far as the file tells. Raises
        NotWithoutSpark for files that only Java reads, FileNotFoundError and StoreUnreachable.
        """
        by_place = [delete for delete in part.deletes if delete.content != _EQUALITY]
        gone = positions_of(self.store, part.path, by_place)
        wanted, lists = self._with_values([delete for delete in part.deletes if delete.content == _EQUALITY])
        for start, batch in self._batches(part.path, part.format, wanted, part.constants, within):
            kept = _without(batch, start, gone) if gone else batch
            for names, values in lists:
                kept = _unlisted(kept, names, values)
            if kept.num_rows:
                yield kept.select(self.arrow.names).cast(self.arrow)

    def _with_values(self, deletes: Sequence[FileEntry]) -> tuple[Schema, list[_Values]]:
        """Return the columns that must be read, and by which of them which values are deleted."""
        if not deletes:
            return self.schema, []
        ids = {number for delete in deletes for number in delete.equality}
        further = map(self._column, sorted(ids - {each.field_id for each in self.schema.fields}))
        lists = [self._values_in(delete.path, delete.format, delete.equality) for delete in deletes]
        return Schema(*self.schema.fields, *further), lists

    @cached_property
    def _values_in(self) -> Callable[[str, str, tuple[int, ...]], _Values]:
        return lru_cache(_FILES_OF_VALUES)(self._read_values)

    def _read_values(self, path: str, format: str, columns: tuple[int, ...]) -> _Values:
        """Return what a file deletes by the values of columns, which are given by their field ids."""
        narrow = Schema(*map(self._column, columns))
        values: set[tuple[Any, ...]] = set()
        for _, batch in self._batches(path, format, narrow, {}):
            values.update(zip(*map(_comparable, batch.columns), strict=True))
        return [each.name for each in narrow.fields], values

    def _column(self, number: int) -> NestedField:
        """Return a column by its field id; one that was dropped since, under a name that no column has.

        Raises NotWithoutSpark for a field inside a column.
        """
        for each in self.schema.fields:
            if each.field_id == number:
                return each
        known = {each.field_id: each for schema in self.metadata.schemas for each in schema.fields}
        if number not in known:
            raise NotWithoutSpark(f'table "{self.table}"', "rows are deleted by a value inside a column")
        return known[number].model_copy(update={"name": f"_esker_dropped_{number}", "required": False})

    def _batches(
        self,
        path: str,
        format: str,
        wanted: Schema,
        constants: Mapping[int, Any],
        within: Wanted | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield rows of a file, in their order, with the table's columns, and the position of the first."""
        if format not in _FORMATS:
            raise NotWithoutSpark(f'table "{self.table}"', f"some of its files are {format} files")
        files, place = self.store.filesystem(path)
        is_micro = self.metadata.format_version <= 2  # which has no nanoseconds
        with explained(path), files.open_input_file(place) as stream:
            whole = _FORMATS[format](stream)
            found = pyarrow_to_schema(
                whole.schema,
                self.metadata.name_mapping(),
                downcast_ns_timestamp_to_us=is_micro,
                format_version=self.metadata.format_version,
            )
            ids = {
                number
                for number in wanted.field_ids
                if not isinstance(wanted.find_type(number), MapType | ListType)
            }
            pruned = prune_columns(found, ids, select_full_types=False)
            missing = {number: value for number, value in constants.items() if number not in found.field_ids}
            names = [each.name for each in pruned.fields]
            known = {each.name: each.field_id for each in found.fields}
            with closing(whole.batches(names, within, known)) as batches:
                for start, batch in batches:
                    projected = _to_requested_schema(
                        wanted,
                        pruned,
                        batch,
                        downcast_ns_timestamp_to_us=is_micro,
                        projected_missing_fields=missing,
                        allow_timestamp_tz_mismatch=True,
                    )
                    yield start, projected


class _Parquet:
    def __init__(self, stream: pa.NativeFile) -> None:
        self._file = pq.ParquetFile(stream)
        self.schema: pa.Schema = self._file.schema_arrow

    def batches(self, names: list[str], within: Wanted | None, columns: Mapping[str, int]) -> _Batches:
        start = 0
        for number in range(self._file.num_row_groups):
            group = self._file.metadata.row_group(number)
            if within is None or within.may_be_in(group, columns):
                at = start
                for batch in self._file.iter_batches(_ROWS, row_groups=[number], columns=names):
                    yield at, batch
                    at += batch.num_rows
            start += group.num_rows


class _Orc:
    def __init__(self, stream: pa.NativeFile) -> None:
        self._file = orc.ORCFile(stream)
        self.schema: pa.Schema = self._file.schema

    def batches(self, names: list[str], within: Wanted | None, columns: Mapping[str, int]) -> _Batches:
        start = 0
        for number in range(self._file.nstripes):
            stripe = self._file.read_stripe(number, columns=names)
            for offset in range(0, stripe.num_rows, _ROWS):
                yield start + offset, stripe.slice(offset, _ROWS)
            start += stripe.num_rows


_FORMATS: dict[str, type[_Parquet] | type[_Orc]] = {"parquet": _Parquet, "orc": _Orc}


def _without(batch: pa.RecordBatch, start: int, gone: BitMap64) -> pa.RecordBatch:
    """Return a batch without the rows at positions that are deleted."""
    kept = BitMap64(range(start, start + batch.num_rows)) - gone
    if len(kept) == batch.num_rows:
        return batch
    return batch.take(pa.array([position - start for position in kept], pa.int64()))


def _unlisted(batch: pa.RecordBatch, names: list[str], values: set[tuple[Any, ...]]) -> pa.RecordBatch:
    """Return a batch without the rows with certain values; a null is deleted by a null."""
    rows = zip(*(_comparable(batch.column(name)) for name in names), strict=True)
    kept = [number for number, row in enumerate(rows) if row not in values]
    return batch if len(kept) == batch.num_rows else batch.take(pa.array(kept, pa.int64()))


def _comparable(column: pa.Array) -> list[Any]:
    """Return values that are equal where Iceberg takes them for equal: NaN is NaN, and −0.0 is not 0.0."""
    values: list[Any] = column.to_pylist()
    if not pa.types.is_floating(column.type):
        return values
    return [None if value is None else "NaN" if isnan(value) else pack(">d", value) for value in values]


def _constants(metadata: TableMetadata, file: FileEntry) -> dict[int, Any]:
    spec = metadata.specs().get(file.spec_id)
    if spec is None or not file.partition:
        return {}
    return {
        each.source_id: value
        for each, (_, value) in zip(spec.fields, file.partition, strict=True)
        if isinstance(each.transform, IdentityTransform) and value is not None
    }


def _type(metadata: TableMetadata, number: int) -> PrimitiveType:
    """Return the type of a column that a table is, or was, partitioned by."""
    schema = next(schema for schema in reversed(metadata.schemas) if number in schema.field_ids)
    kind = schema.find_type(number)
    assert isinstance(kind, PrimitiveType)
    return kind


def _delete_as_json(delete: FileEntry) -> dict[str, Any]:
    document: dict[str, Any] = {"path": delete.path, "format": delete.format, "rows": delete.records}
    if delete.equality:
        document["by"] = list(delete.equality)
    if delete.is_vector:
        document |= {"offset": delete.offset, "length": delete.length}
    if delete.reference is not None:
        document["of"] = delete.reference
    return document


def _delete_from_json(document: Mapping[str, Any]) -> FileEntry:
    by = tuple(document.get("by", ()))
    return FileEntry(
        content=_EQUALITY if by else 1,
        path=document["path"],
        format=document["format"],
        records=document["rows"],
        size=0,
        sequence=0,
        added=0,
        snapshot=None,
        spec_id=0,
        partition=(),
        lower={},
        upper={},
        reference=document.get("of"),
        offset=document.get("offset"),
        length=document.get("length"),
        equality=by,
    )
