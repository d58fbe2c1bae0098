"""Names of tables, and what new ones are like. Without Spark tables have the same names."""

from __future__ import annotations

from dataclasses import dataclass

from esker.engine.sql import identifier
from esker.project import Project

TABLE_DEFAULTS = {
    "format-version": "2",
    # Old metadata files are removed, but enough are kept to tell a rollback from an expiry.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
"""Properties of every table that Esker creates, unless the pipeline says otherwise."""


@dataclass(frozen=True)
class TableId:
    """A table in a catalog."""

    catalog: str
    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def sql(self) -> str:
        """The quoted identifier, with the catalog."""
        return identifier(self.catalog, self.name)

    @property
    def namespace(self) -> str:
        return self.name.rpartition(".")[0]


def named_table(project: Project, name: str, catalog: str | None = None) -> TableId:
    """Return a table by name: a pipeline's, one whose first part names its catalog, or one of `catalog`."""
    return TableId(*project.find_table(name, catalog))
