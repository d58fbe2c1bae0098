"""Changes to tables, as values: a plan lists them, a run or `plan --apply` makes them.

Each is one metadata operation: no file is rewritten, and old snapshots stay readable. What makes them is
loaded when one is made: a plan without changes needs no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from esker.engine.iceberg.new_table import NewTable
from esker.engine.iceberg.table_id import TableId
from esker.ledger.stored_json import as_text
from esker.project.layout import PartitionField, SortField
from esker.project.types import Column, Type

if TYPE_CHECKING:
    from esker.engine.session import Engine

Path = tuple[str, ...]


@dataclass(frozen=True)
class CreateTable:
    """Make a table."""

    table: NewTable
    needs_apply: bool = False

    def __str__(self) -> str:
        return f"create table {self.table.id}"

    def as_json(self) -> dict[str, Any]:
        return {
            "change": "create_table",
            "table": str(self.table.id),
            "ddl": self.table.ddl(),
            "sort_by": [str(field) for field in self.table.sort_fields],
        }

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg.create import create  # noqa: PLC0415 (PySpark)

        create(engine, self.table)


@dataclass(frozen=True)
class AddColumns:
    """Add columns; older rows have no value in them."""

    table: TableId
    columns: tuple[tuple[Path, Column], ...]
    needs_apply: bool = False

    def __str__(self) -> str:
        named = ", ".join(f"{name} {column.type}" for name, column in self._named())
        return f"add to table {self.table}: {named}"

    def as_json(self) -> dict[str, Any]:
        columns = {name: str(column.type) for name, column in self._named()}
        return {"change": "add_columns", "table": str(self.table), "columns": columns}

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg import alter  # noqa: PLC0415 (PySpark)

        alter.add_columns(engine, self.table, self.columns)

    def _named(self) -> list[tuple[str, Column]]:
        return [(".".join((*path, column.name)), column) for path, column in self.columns]


@dataclass(frozen=True)
class WidenColumns:
    """Give columns a type that holds all their values and more."""

    table: TableId
    columns: tuple[tuple[Path, Type], ...]
    needs_apply: bool = False

    def __str__(self) -> str:
        named = ", ".join(f"{'.'.join(path)} to {kind}" for path, kind in self.columns)
        return f"widen in table {self.table}: {named}"

    def as_json(self) -> dict[str, Any]:
        columns = {".".join(path): str(kind) for path, kind in self.columns}
        return {"change": "widen_columns", "table": str(self.table), "columns": columns}

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg import alter  # noqa: PLC0415 (PySpark)

        alter.widen_columns(engine, self.table, self.columns)


@dataclass(frozen=True)
class RenameColumns:
    """Give columns other names; their values stay."""

    table: TableId
    names: tuple[tuple[str, str], ...]
    needs_apply: bool = False

    def __str__(self) -> str:
        named = ", ".join(f"{old} to {new}" for old, new in self.names)
        return f"rename in table {self.table}: {named}"

    def as_json(self) -> dict[str, Any]:
        return {"change": "rename_columns", "table": str(self.table), "columns": dict(self.names)}

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg import alter  # noqa: PLC0415 (PySpark)

        alter.rename_columns(engine, self.table, self.names)


@dataclass(frozen=True)
class DropColumns:
    """Take columns out of a table. Snapshots from before still show them."""

    table: TableId
    columns: tuple[str, ...]
    needs_apply: bool = True

    def __str__(self) -> str:
        return f"drop from table {self.table}: {', '.join(self.columns)}"

    def as_json(self) -> dict[str, Any]:
        return {"change": "drop_columns", "table": str(self.table), "columns": list(self.columns)}

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg import alter  # noqa: PLC0415 (PySpark)

        alter.drop_columns(engine, self.table, self.columns)


@dataclass(frozen=True)
class RelaxColumns:
    """Let required columns, and fields inside columns, be without a value."""

    table: TableId
    columns: tuple[Path, ...]
    needs_apply: bool = False

    def __str__(self) -> str:
        return f"no longer require in table {self.table}: {', '.join(self._named())}"

    def as_json(self) -> dict[str, Any]:
        return {"change": "relax_columns", "table": str(self.table), "columns": self._named()}

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg import alter  # noqa: PLC0415 (PySpark)

        alter.relax_columns(engine, self.table, self.columns)

    def _named(self) -> list[str]:
        return [".".join(path) for path in self.columns]


@dataclass(frozen=True)
class Repartition:
    """Partition new files in another way; old files stay as they are."""

    table: TableId
    dropped: tuple[PartitionField, ...]
    added: tuple[PartitionField, ...]
    needs_apply: bool = False

    def __str__(self) -> str:
        parts = [f"no longer by {field}" for field in self.dropped] + [f"by {field}" for field in self.added]
        return f"partition table {self.table} {', '.join(parts)}"

    def as_json(self) -> dict[str, Any]:
        return {
            "change": "repartition",
            "table": str(self.table),
            "dropped": [str(field) for field in self.dropped],
            "added": [str(field) for field in self.added],
        }

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg import alter  # noqa: PLC0415 (PySpark)

        alter.repartition(engine, self.table, self.dropped, self.added)


@dataclass(frozen=True)
class UpgradeTable:
    """Bring a table to a newer format version; its files stay as they are."""

    table: TableId
    version: int
    needs_apply: bool = True

    def __str__(self) -> str:
        return f"upgrade table {self.table} to format version {self.version}"

    def as_json(self) -> dict[str, Any]:
        return {"change": "upgrade_table", "table": str(self.table), "format_version": self.version}

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg import alter  # noqa: PLC0415 (PySpark)

        alter.set_format_version(engine, self.table, self.version)


@dataclass(frozen=True)
class MapNames:
    """Let files that know nothing of Iceberg's field ids be read by the names of their columns."""

    table: TableId
    needs_apply: bool = True

    def __str__(self) -> str:
        return f"read files of table {self.table} that have no field ids by the names of their columns"

    def as_json(self) -> dict[str, Any]:
        return {"change": "map_names", "table": str(self.table)}

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg import alter  # noqa: PLC0415 (PySpark)

        alter.map_names(engine, self.table)


@dataclass(frozen=True)
class Resort:
    """Sort rows within new files in another way; old files stay as they are."""

    table: TableId
    fields: tuple[SortField, ...]
    needs_apply: bool = False

    def __str__(self) -> str:
        named = ", ".join(str(field) for field in self.fields)
        return f"sort table {self.table} by {named}" if named else f"no longer sort table {self.table}"

    def as_json(self) -> dict[str, Any]:
        fields = [str(field) for field in self.fields]
        return {"change": "resort", "table": str(self.table), "sort_by": fields}

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg.table import sort_by  # noqa: PLC0415 (PySpark)

        sort_by(engine, self.table, self.fields)


@dataclass(frozen=True)
class IdentifyBy:
    """Say which columns identify a row, or that none do."""

    table: TableId
    columns: tuple[str, ...]
    needs_apply: bool = False
    said_by: str | None = None
    """The property that tells which columns Esker named itself."""

    def __str__(self) -> str:
        if not self.columns:
            return f"no longer say which columns identify rows of table {self.table}"
        return f"identify rows of table {self.table} by {', '.join(self.columns)}"

    def as_json(self) -> dict[str, Any]:
        return {"change": "identify_by", "table": str(self.table), "columns": list(self.columns)}

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg.table import identify_by  # noqa: PLC0415 (PySpark)

        if self.said_by is None:
            identify_by(engine, self.table, self.columns)
        elif self.columns:
            identify_by(engine, self.table, self.columns, {self.said_by: as_text(self.columns)})
        else:
            identify_by(engine, self.table, (), removed=(self.said_by,))


@dataclass(frozen=True)
class DescribeColumns:
    """Store other descriptions of columns, and of fields inside columns."""

    table: TableId
    docs: tuple[tuple[Path, str], ...]
    needs_apply: bool = False

    def __str__(self) -> str:
        return f"describe in table {self.table}: {', '.join(self._named())}"

    def as_json(self) -> dict[str, Any]:
        return {"change": "describe_columns", "table": str(self.table), "columns": self._named()}

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg import alter  # noqa: PLC0415 (PySpark)

        alter.describe_columns(engine, self.table, self.docs)

    def _named(self) -> dict[str, str]:
        return {".".join(path): doc for path, doc in self.docs}


@dataclass(frozen=True)
class ReorderColumns:
    """Bring columns into another order; files that are there stay as they are."""

    table: TableId
    columns: tuple[str, ...]
    needs_apply: bool = False

    def __str__(self) -> str:
        return f"order the columns of table {self.table}: {', '.join(self.columns)}"

    def as_json(self) -> dict[str, Any]:
        return {"change": "reorder_columns", "table": str(self.table), "columns": list(self.columns)}

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg import alter  # noqa: PLC0415 (PySpark)

        alter.reorder_columns(engine, self.table, self.columns)


@dataclass(frozen=True)
class SetProperties:
    """Set or remove properties of a table; files that are there stay as they are."""

    table: TableId
    properties: Mapping[str, str]
    removed: tuple[str, ...] = ()
    needs_apply: bool = False

    def __str__(self) -> str:
        named = [f"{key} = {value}" for key, value in self._told().items()]
        named += [f"{key} is removed" for key in self.removed]
        if not named:
            return f"write down what the project sets in table {self.table}"
        return f"set properties of table {self.table}: {', '.join(named)}"

    def as_json(self) -> dict[str, Any]:
        found = {"change": "set_properties", "table": str(self.table), "properties": self._told()}
        return found | ({"removed": list(self.removed)} if self.removed else {})

    def _told(self) -> dict[str, str]:
        """Return the properties without Esker's own."""
        return {key: value for key, value in self.properties.items() if not key.startswith("esker.")}

    def apply(self, engine: Engine) -> None:
        from esker.engine.iceberg import alter  # noqa: PLC0415 (PySpark)

        alter.set_properties(engine, self.table, self.properties, self.removed)


TableChange = (
    CreateTable
    | AddColumns
    | WidenColumns
    | RenameColumns
    | DropColumns
    | RelaxColumns
    | Repartition
    | UpgradeTable
    | MapNames
    | Resort
    | IdentifyBy
    | DescribeColumns
    | ReorderColumns
    | SetProperties
)
