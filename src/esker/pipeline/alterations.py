"""What must be altered so that a table, and its change log, fit what is declared and what is sent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from esker.contracts.evolution import (
    Added,
    Differences,
    Path,
    compare,
    find,
    shared,
    with_changes,
    with_required,
)
from esker.engine.iceberg.new_table import NewTable
from esker.engine.iceberg.table_id import TABLE_DEFAULTS, TableId
from esker.engine.iceberg.table_metadata import Table
from esker.errors import ColumnsFrozen, TypeConflict, UnsuitableKey
from esker.ledger.change_columns import log_columns
from esker.ledger.stored_json import as_text, read_property
from esker.load.keys import identifying_key, keyed_columns, version_columns
from esker.pipeline.table_changes import (
    AddColumns,
    CreateTable,
    DescribeColumns,
    DropColumns,
    IdentifyBy,
    RelaxColumns,
    RenameColumns,
    ReorderColumns,
    Repartition,
    Resort,
    SetProperties,
    TableChange,
    UpgradeTable,
    WidenColumns,
)
from esker.project import Pipeline
from esker.project.contract import Contract
from esker.project.layout import SortField, parse_partition_field
from esker.project.readers import CODEC, DEFAULT_CODEC
from esker.project.reserved import is_own
from esker.project.types import Column, Decimal, Plain, stored_types
from esker.sources import Sent

_SET_BY = "esker.properties."
_IDENTIFIED_BY = "esker.identifier."
"""With a pipeline's name: the columns that it lets the table call its identifier."""
FILE_FORMAT = "write.format.default"
"""Iceberg's property for the format of new files."""


@dataclass(frozen=True)
class Altered:
    """The changes that a table needs, its columns after them, and what people should know."""

    changes: tuple[TableChange, ...]
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()
    unknown: Added = ()
    """Columns that are sent and not added: rows that carry them are to be left out."""


@dataclass(frozen=True)
class Declared:
    """A table as what is declared makes it, before anything that the source sends."""

    stored: tuple[Column, ...]
    """What the table has, by its new names, without the requirements that were taken back."""
    columns: tuple[Column, ...]
    """Those, and what is declared beyond them."""
    kept: tuple[Column, ...]
    """Those columns that are not dropped."""
    renamed: tuple[tuple[str, str], ...]
    relaxed: tuple[Path, ...]
    required: tuple[Path, ...]
    """What is in the table, and required from now on: older rows may lack it."""
    found: Differences


def as_declared(pipeline: Pipeline, present: Table) -> Declared:
    """Return what a table is after all that is declared has been done to it."""
    declared = pipeline.declared_columns()
    stored, renamed = _renamed(pipeline, present)
    stored, relaxed = _relaxed(pipeline, stored)
    found = compare(stored, declared, is_text=False)
    columns = with_changes(stored, found)
    return Declared(
        stored=stored,
        columns=columns,
        kept=tuple(column for column in columns if not _is_dropped(pipeline, column.name)),
        renamed=renamed,
        relaxed=relaxed,
        required=_demanded(pipeline, stored),
        found=found,
    )


def creation(
    pipeline: Pipeline,
    table: TableId,
    sent: Sent,
    contract: Contract | None = None,
    name: str | None = None,
) -> Altered:
    """Return a new table: the contract's columns, or those of the source and what it does not send.

    `name` is the pipeline's, if it is to be known later which properties it set.

    Raises TypeConflict, or ColumnsFrozen for what the source sends and the contract lacks.
    """
    declared = pipeline.declared_columns()
    notes: tuple[str, ...] = ()
    unknown: Added = ()
    if contract is None:
        named = tuple(find(declared, column.name) or column for column in sent.columns)
        columns = (*named, *(column for column in declared if find(sent.columns, column.name) is None))
    else:
        found = compare(
            declared, sent.columns, is_text=sent.is_text, is_exact=sent.is_exact, is_loose=sent.is_loose
        )
        _check_conflicts(table, found)
        found, notes, unknown = _allowed(pipeline, table, found)
        columns = with_changes(declared, found)
    if not columns:
        return Altered((), ())
    if pipeline.is_keyed:
        columns = keyed_columns(pipeline, columns)
    _check_conflicts(
        table,
        compare(columns, sent.columns, is_text=sent.is_text, is_exact=sent.is_exact, is_loose=sent.is_loose),
    )
    _check_partitions(pipeline, columns)
    order = _sort_order(pipeline, columns)
    columns = _in_order(pipeline, columns)
    key = _key(pipeline, columns, contract)
    properties = {
        **TABLE_DEFAULTS,
        "format-version": str(pipeline.format_version),
        FILE_FORMAT: pipeline.format,
        **_codec(pipeline),
        **pipeline.properties,
        **(_set_by(pipeline, name) if name is not None and pipeline.properties else {}),
        **({_IDENTIFIED_BY + name: as_text(key)} if name is not None and key else {}),
    }
    made = CreateTable(NewTable(table, columns, pipeline.partition_fields(), properties, order, key))
    return Altered((made,), columns, notes, unknown)


def alterations(
    pipeline: Pipeline,
    present: Table,
    sent: Sent,
    contract: Contract | None = None,
    name: str | None = None,
) -> Altered:
    """Return what brings a table to what is declared and sent, as far as `evolution` allows.

    Without the pipeline's `name` nobody knows what it set before: no property of it is removed, nor the key.

    Raises TypeConflict, or ColumnsFrozen for what the source sends and the policy forbids.
    """
    is_frozen = pipeline.evolution == "freeze"
    changes: list[TableChange] = []
    declared = as_declared(pipeline, present)
    changes += _identifier_renamed(present, declared, name, is_frozen)
    if declared.renamed:
        changes.append(RenameColumns(present.id, declared.renamed, is_frozen))
    # First of all: what identifies rows can be neither dropped nor without a value.
    changes += _identified(pipeline, present, declared, contract, name, is_frozen)
    if declared.relaxed:
        changes.append(RelaxColumns(present.id, declared.relaxed, is_frozen))
    columns = declared.columns
    found = compare(
        columns, sent.columns, is_text=sent.is_text, is_exact=sent.is_exact, is_loose=sent.is_loose
    )
    if declared.found.conflicts:
        conflicts = [conflict.replace("in the source", "declared") for conflict in declared.found.conflicts]
        raise TypeConflict(str(present.id), conflicts, "the project declares")
    _check_conflicts(present.id, found)
    found, notes, unknown = _allowed(pipeline, present.id, found)
    columns = with_changes(columns, found)
    own: tuple[Column, ...] = ()
    if pipeline.is_keyed:
        own = tuple(c for c in keyed_columns(pipeline, columns) if find(columns, c.name) is None)
    columns = (*columns, *own)
    # Where order_by was widened, the moments of versions are, too.
    moments = compare(columns, version_columns(pipeline, columns), is_text=False)
    _check_conflicts(present.id, moments)
    columns = with_changes(columns, moments)
    # What the source sends inside a column that is declared only now is a part of that column.
    altered = compare(declared.stored, columns, is_text=False)
    if altered.added:
        changes.append(AddColumns(present.id, altered.added, is_frozen))
    if altered.widened:
        changes.append(WidenColumns(present.id, altered.widened, is_frozen))
    if dropped := tuple(c.name for c in columns if _is_dropped(pipeline, c.name)):
        changes += _unsorted(pipeline, present, declared, dropped, is_frozen)
        changes.append(DropColumns(present.id, dropped))
        columns = tuple(column for column in columns if column.name not in dropped)
    if (ordered := _in_order(pipeline, columns)) != columns:
        columns = ordered
        changes.append(ReorderColumns(present.id, tuple(column.name for column in columns), is_frozen))
    _check_partitions(pipeline, columns)
    if repartition := _repartition(pipeline, present, is_frozen):
        changes.append(repartition)
    if "sort_by" in pipeline.model_fields_set:
        order = _sort_order(pipeline, columns)
        if order != _renamed_order(present.sort_fields, declared.renamed):
            changes.append(Resort(present.id, order, is_frozen))
    changes += _reformatted(pipeline, present)
    if contract is not None:
        changes += _described(pipeline, present.id, declared.stored)
    changes += _with_properties(pipeline, present, name)
    # Rows are checked by what is declared as required, also where older rows lack it.
    checked = with_required(columns, _demanded(pipeline, columns), required=True)
    return Altered(tuple(changes), checked, notes, unknown)


def _allowed(
    pipeline: Pipeline, table: TableId, found: Differences
) -> tuple[Differences, tuple[str, ...], Added]:
    """Return what `evolution` lets happen of what the source sends, notes, and what rows may not carry.

    Raises ColumnsFrozen for what it forbids.
    """
    notes: tuple[str, ...] = ()
    unknown: Added = ()
    left = ", ".join(".".join((*path, column.name)) for path, column in found.added)
    if pipeline.evolution == "discard_column" and found.added:
        notes = (f"columns that the table lacks are left out: {left}",)
        found = replace(found, added=())
    if pipeline.evolution == "discard_row" and found.added:
        notes = (f"rows with columns that the table lacks go to the quarantine: {left}",)
        unknown, found = found.added, replace(found, added=())
    if pipeline.evolution != "evolve" and (found.added or found.widened):
        names = [column.name for _, column in found.added] + [".".join(path) for path, _ in found.widened]
        raise ColumnsFrozen(str(table), names)
    return found, notes, unknown


def _reformatted(pipeline: Pipeline, present: Table) -> list[TableChange]:
    """Return what brings new files, and the table itself, to the formats that are declared."""
    changes: list[TableChange] = []
    if is_upgraded(pipeline, present):
        changes.append(UpgradeTable(present.id, pipeline.format_version))
    if is_reformatted(pipeline, present):
        changes.append(SetProperties(present.id, {FILE_FORMAT: pipeline.format}))
    return changes


def is_upgraded(pipeline: Pipeline, present: Table) -> bool:
    """Tell whether a newer format version is declared than the table has."""
    return "format_version" in pipeline.model_fields_set and pipeline.format_version > present.format_version


def is_reformatted(pipeline: Pipeline, present: Table) -> bool:
    """Tell whether another format of files is declared than the table's new ones have."""
    return "format" in pipeline.model_fields_set and pipeline.format != file_format(present)


def file_format(present: Table) -> str:
    """Return the format of a table's new files."""
    return present.properties.get(FILE_FORMAT, "parquet").lower()


def _described(pipeline: Pipeline, present: TableId, stored: tuple[Column, ...]) -> list[TableChange]:
    """Return the descriptions of columns that a contract has and the table has not.

    `stored` are its columns by their new names.
    """
    docs = tuple(
        (path, declared.doc)
        for path, column, declared in shared(stored, pipeline.declared_columns())
        if declared.doc and declared.doc != column.doc
    )
    return [DescribeColumns(present, docs)] if docs else []


def _key(pipeline: Pipeline, columns: tuple[Column, ...], contract: Contract | None) -> tuple[str, ...]:
    """Return the columns that identify a row of a table with these columns, if all are there."""
    declared = contract.key if contract is not None and contract.key else identifying_key(pipeline)
    found = [find(columns, name) for name in declared]
    return tuple(column.name for column in found if column is not None) if None not in found else ()


def _identified(
    pipeline: Pipeline,
    present: Table,
    declared: Declared,
    contract: Contract | None,
    name: str | None,
    is_frozen: bool,
) -> list[TableChange]:
    """Return what lets a table say which columns identify a row, by their new names.

    What others let it say is changed by a contract only. What the pipeline let it say follows the key, and
    is taken back where the key is none, or one that Iceberg cannot have.
    """
    key = _key(pipeline, declared.stored, contract)
    names = dict(declared.renamed)
    known = {names.get(column, column) for column in present.identifier}
    own = {names.get(column, column) for column in _named_by(present, name)}
    is_own = bool(known) and known == own
    said_by = _IDENTIFIED_BY + name if name is not None else None
    # Whoever joins or merges by the key counts on it.
    needs_apply = is_frozen and bool(known)
    # Iceberg identifies rows by required columns only; a table that has rows cannot begin to require some.
    required = {column.name for column in declared.stored if column.required}
    is_ruled = contract is not None and bool(contract.key)
    if key and set(key) <= required:
        if set(key) == known or (known and not is_own and not is_ruled):
            return []
        return [IdentifyBy(present.id, key, needs_apply, said_by)]
    if not is_own:
        return []
    # A contract's key that the table cannot have waits, and is told of: unless what is there is in the way.
    kept = required - {column.name for column in declared.stored if _is_dropped(pipeline, column.name)}
    if is_ruled and known <= kept:
        return []
    return [IdentifyBy(present.id, (), needs_apply, said_by)]


def _unsorted(
    pipeline: Pipeline, present: Table, declared: Declared, dropped: tuple[str, ...], is_frozen: bool
) -> list[TableChange]:
    """Return what lets columns go by which rows are sorted: without `sort_by` that is the key of the past."""
    if "sort_by" in pipeline.model_fields_set:
        return []
    order = _renamed_order(present.sort_fields, declared.renamed)
    left = tuple(field for field in order if field.column not in dropped)
    return [Resort(present.id, left, is_frozen)] if left != order else []


def _identifier_renamed(
    present: Table, declared: Declared, name: str | None, is_frozen: bool
) -> list[TableChange]:
    """Return what lets a table know its identifier for the pipeline's also after columns were renamed.

    It comes before the rename: stopped between the two, the names are still told apart from those of others.
    """
    names = dict(declared.renamed)
    known = _named_by(present, name)
    renamed = tuple(names.get(column, column) for column in known)
    if name is None or renamed == known:
        return []
    return [SetProperties(present.id, {_IDENTIFIED_BY + name: as_text(renamed)}, needs_apply=is_frozen)]


def _named_by(present: Table, name: str | None) -> tuple[str, ...]:
    """Return the columns that a pipeline let a table call its identifier."""
    known = read_property(present.properties, _IDENTIFIED_BY + name, tuple) if name is not None else None
    return known or ()


def without_key(changes: tuple[TableChange, ...]) -> tuple[TableChange, ...]:
    """Return changes of a table that holds rows which its key does not identify."""
    return tuple(
        replace(change, table=_keyless(change.table)) if isinstance(change, CreateTable) else change
        for change in changes
        if not (isinstance(change, IdentifyBy) and change.columns)
    )


def _keyless(table: NewTable) -> NewTable:
    properties = {k: v for k, v in table.properties.items() if not k.startswith(_IDENTIFIED_BY)}
    return replace(table, identifier=(), properties=properties)


def _in_order(pipeline: Pipeline, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return columns in the order that is declared, if it counts: then all others, as they are."""
    if pipeline.column_order != "declared":
        return columns
    found = (find(columns, declared.name) for declared in pipeline.declared_columns())
    first = tuple(column for column in found if column is not None)
    return (*first, *(column for column in columns if column not in first))


def is_in_order(pipeline: Pipeline, columns: tuple[Column, ...]) -> bool:
    """Tell whether columns of a table stand in the order in which they are declared."""
    places = [column.name.lower() for column in columns]
    found = [places.index(name) for name in map(str.lower, pipeline.columns) if name in places]
    return found == sorted(found)


def _with_properties(pipeline: Pipeline, present: Table, name: str | None) -> list[TableChange]:
    """Return what brings a table's properties to those declared. What the pipeline set before is removed."""
    wanted = {k: v for k, v in pipeline.properties.items() if present.properties.get(k) != v}
    removed: tuple[str, ...] = ()
    if name is not None:
        known = read_property(present.properties, _SET_BY + name, tuple) or ()
        gone = [key for key in known if key not in pipeline.properties and key in present.properties]
        first = {**TABLE_DEFAULTS, CODEC: DEFAULT_CODEC, **_codec(pipeline)}
        wanted |= {k: first[k] for k in gone if k in first and first[k] != present.properties[k]}
        removed = tuple(key for key in gone if key not in first)
        if sorted(pipeline.properties) != sorted(known):
            wanted |= _set_by(pipeline, name)
    return [SetProperties(present.id, wanted, removed)] if wanted or removed else []


def _set_by(pipeline: Pipeline, name: str) -> dict[str, str]:
    """Return the property by which a table says which other ones a pipeline has set."""
    return {_SET_BY + name: as_text(sorted(pipeline.properties))}


def log_alterations(
    pipeline: Pipeline, log: TableId, present: Table | None, columns: tuple[Column, ...]
) -> tuple[TableChange, ...]:
    """Return what brings the change log to the table's columns. What was dropped stays in old changes."""
    rows = tuple(column for column in columns if not is_own(column.name))
    wanted = log_columns(rows, pipeline.order_by)
    # Old changes lack fields that became required later, as they lack columns.
    wanted = with_required(wanted, _required_inside(wanted), required=False)
    if present is None:
        return (CreateTable(NewTable(log, wanted, (), {**TABLE_DEFAULTS, **_codec(pipeline)})),)
    changes: list[TableChange] = []
    stored, renamed = _renamed(pipeline, present)
    if renamed:
        changes.append(RenameColumns(log, renamed))
    if replaced := _replaced(pipeline, stored, wanted):
        changes.append(RenameColumns(log, replaced))
        names = dict(replaced)
        stored = tuple(replace(column, name=names.get(column.name, column.name)) for column in stored)
    if demands := _required_inside(stored):
        changes.append(RelaxColumns(log, demands))
    differences = compare(stored, wanted, is_text=False)
    _check_conflicts(log, differences)
    if differences.added:
        changes.append(AddColumns(log, differences.added))
    if differences.widened:
        changes.append(WidenColumns(log, differences.widened))
    return tuple(changes)


def _replaced(
    pipeline: Pipeline, stored: tuple[Column, ...], wanted: tuple[Column, ...]
) -> tuple[tuple[str, str], ...]:
    """Return columns of a change log that the table has dropped and has again with another type, each with
    the name under which the log keeps it. Only the table's owner can have done that: types go no other way.
    """
    taken = {column.name.lower() for column in (*stored, *wanted)}
    keys = {name.lower() for name in pipeline.key}
    found = []
    for column in stored:
        now = find(wanted, column.name)
        if now is None or is_own(column.name) or column.name.lower() in keys:
            continue
        if compare((column,), (now,), is_text=False).conflicts:
            names = (f"{column.name}__{number}" for number in count(1))
            name = next(each for each in names if each.lower() not in taken)
            taken.add(name.lower())
            found.append((column.name, name))
    return tuple(found)


def _codec(pipeline: Pipeline) -> dict[str, str]:
    """Return the property of the codec that a pipeline's readers need, where Iceberg would take another."""
    codec = pipeline.encoding().codec if pipeline.readers else None
    return {CODEC: codec} if codec not in (None, DEFAULT_CODEC) else {}


def _renamed(pipeline: Pipeline, present: Table) -> tuple[tuple[Column, ...], tuple[tuple[str, str], ...]]:
    """Return the columns after the declared renames that are not done yet, and these."""
    names = {}
    for new, declaration in pipeline.columns.items():
        old = declaration.renamed_from
        if old is not None and find(present.columns, new) is None:
            stored = find(present.columns, old)
            if stored is not None:
                names[stored.name] = new
    columns = tuple(replace(c, name=names.get(c.name, c.name)) for c in present.columns)
    return columns, tuple(names.items())


def _relaxed(pipeline: Pipeline, columns: tuple[Column, ...]) -> tuple[tuple[Column, ...], tuple[Path, ...]]:
    """Return the columns without the requirements that were taken back in so many words, and their paths.

    A declaration that says whether its column is required says so of the fields inside, too.
    """
    free = {
        name.lower()
        for name, declaration in pipeline.columns.items()
        if "required" in declaration.model_fields_set
    } - {name.lower() for name in pipeline.key}
    paths = tuple(
        path
        for path, column, declared in shared(columns, pipeline.declared_columns())
        if column.required and not declared.required and path[0].lower() in free
    )
    return with_required(columns, paths, required=False), paths


def _demanded(pipeline: Pipeline, columns: tuple[Column, ...]) -> tuple[Path, ...]:
    """Return what is declared as required, and not so among the columns."""
    pairs = shared(columns, pipeline.declared_columns())
    return tuple(path for path, column, declared in pairs if declared.required and not column.required)


def _required_inside(columns: tuple[Column, ...]) -> tuple[Path, ...]:
    """Return the fields inside columns that are required."""
    return tuple(path for path, field, _ in shared(columns, columns) if field.required and len(path) > 1)


def _is_dropped(pipeline: Pipeline, name: str) -> bool:
    return name.lower() in (dropped.lower() for dropped in pipeline.drop_columns)


def _repartition(pipeline: Pipeline, present: Table, is_frozen: bool) -> Repartition | None:
    wanted = pipeline.partition_fields()
    if "partition_by" not in pipeline.model_fields_set:
        return None
    stored = tuple(parse_partition_field(text) for text in present.partition_fields)
    dropped = tuple(field for field in stored if str(field).lower() not in {str(f).lower() for f in wanted})
    added = tuple(field for field in wanted if str(field).lower() not in {str(f).lower() for f in stored})
    return Repartition(present.id, dropped, added, is_frozen) if dropped or added else None


def _check_partitions(pipeline: Pipeline, columns: tuple[Column, ...]) -> None:
    """Raise UnsuitableKey for a partitioning by values that Spark and Iceberg do not see as the same."""
    for field in pipeline.partition_fields():
        column = find(columns, field.column)
        if column is not None and (stored := stored_types(column.type)):
            why = f"Spark cannot bring together rows by values of type {stored[0]}"
            fitting = [c.name for c in columns if not stored_types(c.type)]
            raise UnsuitableKey(str(pipeline.table), "partition_by", field.column, why, fitting)


def _sort_order(pipeline: Pipeline, columns: tuple[Column, ...]) -> tuple[SortField, ...]:
    """Return how rows are to be sorted, with the table's names of columns, or raise UnsuitableKey."""
    sortable = tuple(c for c in columns if isinstance(c.type, Plain | Decimal) and not stored_types(c.type))
    order = []
    for field in pipeline.sort_fields():
        column = find(sortable, field.column)
        if column is None and "sort_by" not in pipeline.model_fields_set:
            return ()  # whoever looks at the key tells what is wrong with it
        if column is None:
            why = "it is no column with plain values"
            raise UnsuitableKey(str(pipeline.table), "sort_by", field.column, why, [c.name for c in sortable])
        order.append(replace(field, column=column.name))
    return tuple(order)


def _renamed_order(
    order: tuple[SortField, ...], renamed: tuple[tuple[str, str], ...]
) -> tuple[SortField, ...]:
    """Return a sort order after columns were renamed."""
    names = dict(renamed)
    return tuple(replace(field, column=names.get(field.column, field.column)) for field in order)


def _check_conflicts(table: TableId, found: Differences) -> None:
    if found.conflicts:
        raise TypeConflict(str(table), found.conflicts)
