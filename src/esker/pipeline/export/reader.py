"""A lake as other engines see it: a catalog, a store and the tables that pipelines load."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import SecretStr

from esker.errors import CannotExport
from esker.project import Project
from esker.project.catalogs import AnyCatalog
from esker.project.secrets import as_written, names_in
from esker.project.stores import FileStore


@dataclass(frozen=True)
class Exported:
    """A file for another program."""

    name: str
    """What it is usually called."""
    text: str
    variables: tuple[str, ...] = ()
    """Variables that must be set where it is used."""


@dataclass(frozen=True)
class Lake:
    """A catalog of a project, with its store and the tables that pipelines load into it."""

    project: Project
    name: str
    """The catalog's name."""
    catalog: AnyCatalog
    store: FileStore | None
    tables: tuple[str, ...]
    reader: str

    @classmethod
    def of(cls, project: Project, connection: str | None, reader: str) -> Lake:
        catalog = project.catalog_of(connection)
        tables = sorted(
            {pipeline.table for pipeline in project.pipelines.values() if pipeline.catalog == connection}
        )
        store = project.store_of(catalog)
        return cls(project, project.catalog_name(connection), catalog, store, tuple(tables), reader)

    @property
    def example(self) -> tuple[str, str]:
        """Namespace and name of one of its tables."""
        namespace, _, table = (self.tables[0] if self.tables else "namespace.table").rpartition(".")
        return namespace, table

    @property
    def location(self) -> str:
        """Where the warehouse is, a folder as a path."""
        return self.project.warehouse_of(self.catalog)

    def refused(self, why: str) -> CannotExport:
        """Return the error that says why this catalog is not for this reader."""
        return CannotExport(self.reader, why)


@dataclass
class Settings:
    """Names and values for a reader, with variables in place of secrets."""

    variable: str
    """How the reader writes the value of an environment variable, `{}` being its name."""
    values: dict[str, str]
    used: list[str]

    @classmethod
    def empty(cls, variable: str) -> Settings:
        return cls(variable, {}, [])

    def add(self, name: str, value: str | SecretStr | bool | None) -> None:
        """Add a value, unless it is None."""
        match value:
            case None:
                return
            case bool():
                self.values[name] = str(value).lower()
            case SecretStr():
                self.values[name] = self.secret(value)
            case str():
                self.values[name] = value

    def secret(self, value: SecretStr) -> str:
        """Return a secret by the variables that it was written with."""
        text = value.get_secret_value()
        self.used += [name for name in names_in(text) if name not in self.used]
        return as_written(text, self.variable)
