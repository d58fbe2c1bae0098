"""Tables of dlt as pipelines of Esker: columns, mode and key from dlt's schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from dlt.common.destination.typing import PreparedTableSchema
from dlt.common.schema.utils import (
    get_active_record_timestamp,
    get_columns_names_with_prop,
    get_dedup_sort_tuple,
    get_first_column_name_with_prop,
    get_validity_column_names,
    is_nested_table,
)
from pydantic import TypeAdapter, ValidationError

from esker.dlt.types import declared
from esker.errors import DltRefused
from esker.project import Pipeline, Project
from esker.project.declaration import TableName
from esker.project.sources import SourceDeclaration
from esker.project.system_tables import BESIDE_A_TABLE, reserved_ending

_NO_COLUMN = "_dlt_never_sent"
"""The name of a column that marks deletes, where nothing marks them: `deleted` may be anybody's column."""
_LONGEST = 63
_STAND_IN = {"type": "python", "function": "dlt:package"}


class PackageSource(SourceDeclaration):
    """The load packages of a dlt pipeline."""

    type: str = "dlt_package"
    pipeline: str

    @property
    def reads(self) -> str:
        return f"load packages of dlt pipeline {self.pipeline}"

    @property
    def fingerprint(self) -> str:
        return f"dlt pipeline {self.pipeline}"


@dataclass(frozen=True)
class Merge:
    """How the rows of a table of dlt meet those that are stored."""

    strategy: str
    primary_key: tuple[str, ...]
    merge_key: tuple[str, ...]
    row_key: str | None
    """The column of a row's own id."""
    root_key: str | None
    """The column of nested rows with the id of the row that they belong to in the end."""
    hash: str | None
    """Of `scd2`: the column that is equal for equal rows."""
    hard_delete: tuple[str, bool] | None
    """The column that marks deletes, and whether it is a truth value; else any value marks one."""
    sort: tuple[str, str] | None
    """Of rows with the same primary key, the first by this column stays."""
    is_nested: bool

    @classmethod
    def of(cls, table: PreparedTableSchema, strategy: str) -> Merge:
        def named(hint: str) -> tuple[str, ...]:
            return tuple(get_columns_names_with_prop(table, hint))

        def first(hint: str) -> Any:
            return get_first_column_name_with_prop(table, hint)

        deleted = first("hard_delete")
        return cls(
            strategy,
            named("primary_key"),
            named("merge_key"),
            first("row_key") or first("unique"),
            first("root_key"),
            first("x-row-version"),
            None if deleted is None else (deleted, table["columns"][deleted]["data_type"] == "bool"),
            get_dedup_sort_tuple(table),
            is_nested_table(table),
        )


def pipeline_name(dlt_pipeline: str, table: str) -> str:
    """Return the name under which a table's loads stand in its ledger."""
    plain = f"dlt_{dlt_pipeline}__{table}"
    name = re.sub(r"[^a-z0-9_]", "_", plain.lower())
    if name == plain and len(name) <= _LONGEST:
        return name
    digest = blake2b(plain.encode(), digest_size=6).hexdigest()
    return f"{name[: _LONGEST - len(digest) - 1]}_{digest}"


def own_table(name: str, *, is_plain: bool) -> str:
    """Return how one of dlt's own tables is called in the catalog: some take no underscore in front."""
    return name.removeprefix("_") if is_plain else name


def declare(
    project: Project,
    dlt_pipeline: str,
    dataset: str,
    table: PreparedTableSchema,
    merge: Merge | None,
    ids: Sequence[str],
    *,
    has_nested: bool,
    own_key: Sequence[str] = (),
    is_plain: bool = False,
) -> Pipeline:
    """Return what loads a table of dlt. Raises DltRefused for what cannot be loaded as dlt wants it.

    `ids` are the columns of dlt's own that tell in which load a row came; `own_key` is the key of a table
    that is dlt's own, whose name has no underscore in front with `is_plain`.
    """
    name = own_table(table["name"], is_plain=is_plain) if own_key else table["name"]
    full = f"{dataset}.{name}"
    if project.system_namespace is None and (ending := reserved_ending(name, kinds=BESIDE_A_TABLE)):
        raise DltRefused(
            full,
            f"Esker keeps tables of its own beside a table, and their names end with {ending}.",
            "Let them stand elsewhere, with system_namespace: in esker.yml, or rename the field in dlt.",
        )
    columns = dict(table["columns"])
    document: dict[str, Any] = {"table": "dlt.package", "source": _STAND_IN}
    document |= {"guard": {"times_usual": "off"}}
    if own_key:
        document |= {"mode": "insert_only", "key": list(own_key), "changes": False, "deletes": "hard"}
        document["deleted_column"] = _NO_COLUMN
    elif merge is None:
        document["mode"] = "replace" if table["write_disposition"] == "replace" else "append"
        if document["mode"] == "replace":
            document["guard"] |= {"min_rows": 0}
    else:
        _check_hints(full, table)
        document |= _merged(full, table, merge, ids, has_nested=has_nested)
        if merge.strategy == "scd2" and not merge.is_nested:
            for own in document["versions"].values():
                columns.pop(own, None)
    document["columns"] = {key: declared(column) for key, column in columns.items()}
    document |= _layout(table, columns)
    try:
        TypeAdapter(TableName).validate_python(full)
        found = Pipeline.model_validate(document)
    except ValidationError as error:
        told = "; ".join(str(each["msg"]) for each in error.errors())
        raise DltRefused(full, f"{told}.", "Change the hints of the resource.") from error
    return found.model_copy(update={"table": full, "source": PackageSource(pipeline=dlt_pipeline)})


def _merged(
    full: str, table: PreparedTableSchema, merge: Merge, ids: Sequence[str], *, has_nested: bool
) -> dict[str, Any]:
    """Return mode, key and what else belongs to a merge."""
    deletes: dict[str, Any] = {"deleted_column": _NO_COLUMN}
    if merge.is_nested:
        return deletes | _nested(full, merge)
    if merge.strategy == "scd2":
        return deletes | _versions(full, table, merge, ids)
    if merge.hard_delete is not None:
        column, is_flag = merge.hard_delete
        deletes["delete_when"] = f"`{column}`" if is_flag else f"`{column}` IS NOT NULL"
    if merge.primary_key and merge.merge_key:
        raise DltRefused(
            full,
            "It has a primary_key and a merge_key. Rows are found by one key.",
            "Leave one of them out: primary_key where a row replaces a row, merge_key where the rows of a "
            "load replace all rows with the same value.",
        )
    if merge.merge_key:
        return deletes | {"mode": "delete_insert", "key": list(merge.merge_key)}
    if not merge.primary_key:
        if "delete_when" in deletes:
            raise DltRefused(
                full, "It has a hard_delete column, and no key tells what to delete.", "Add a primary_key."
            )
        return {"mode": "append"}
    # Nested rows name the id of their row: it must not stay when theirs are new.
    is_stable = merge.strategy != "delete-insert" or not has_nested
    ignored = [each for each in ids if is_stable or each != merge.row_key]
    mode = "insert_only" if merge.strategy == "insert-only" else "upsert"
    kept = [each for each in ignored if each in table["columns"] and each not in merge.primary_key]
    return deletes | {
        "mode": mode,
        "key": list(merge.primary_key),
        "deletes": "hard",
        "ignore_columns": kept,
    }


def _nested(full: str, merge: Merge) -> dict[str, Any]:
    if merge.row_key is None:
        raise DltRefused(full, "Its rows have no id of dlt's.", "Leave dlt's row keys on.")
    if merge.strategy in ("scd2", "insert-only"):
        # Their ids are made from what they hold and where they stand: what is known is there already.
        return {"mode": "insert_only", "key": [merge.row_key], "deletes": "hard"}
    if merge.root_key is None:
        raise DltRefused(
            full,
            "Its rows do not name the row that they belong to.",
            "Write `root_key=True` at the dlt source, and load it anew with `refresh`.",
        )
    return {"mode": "delete_insert", "key": [merge.root_key]}


def _versions(full: str, table: PreparedTableSchema, merge: Merge, ids: Sequence[str]) -> dict[str, Any]:
    valid_from, valid_to = get_validity_column_names(table)
    if merge.hash is None:
        raise DltRefused(full, "No column tells its versions apart.", "Name one: row_version_column_name.")
    if get_active_record_timestamp(table) is not None:
        raise DltRefused(
            full,
            "active_record_timestamp is set. What is valid now has no end here.",
            "Leave active_record_timestamp out.",
        )
    assert valid_from is not None
    names = {"valid_from": valid_from, "valid_to": valid_to, "is_current": "_dlt_is_current"}
    kept = [each for each in ids if each in table["columns"] and each != merge.hash]
    return {"mode": "scd2", "key": [merge.hash], "versions": names, "ignore_columns": kept}


def _check_hints(full: str, table: PreparedTableSchema) -> None:
    hints = {"x-merge-source-filter": "source_filter", "x-merge-destination-scope": "destination_scope"}
    for hint, name in hints.items():
        if table.get(hint):
            raise DltRefused(
                full,
                f"{name} is set, which is SQL for a database that has the rows staged. There is none here.",
                f"Leave {name} out, and filter in the resource with add_filter.",
            )


def _layout(table: PreparedTableSchema, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return partitioning and order, where the hints name some."""
    found = {}
    for hint, key in (("partition", "partition_by"), ("sort", "sort_by")):
        names = [each for each in get_columns_names_with_prop(table, hint) if each in columns]
        if names:
            found[key] = names
    return found
