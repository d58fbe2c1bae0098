"""The project file as a whole: everything that a user declares, after checking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, model_validator

from esker.errors import UnknownPipeline
from esker.project.catalogs import Catalog, SqliteCatalog
from esker.project.declaration import Declaration, MistakeAt, Name
from esker.project.pipelines import Pipeline
from esker.project.settings import SparkSettings, StateSettings
from esker.project.suggest import closest

DEFAULT_CATALOG = "lake"


class Project(Declaration):
    """A folder with an `esker.yml`: connections, pipelines and where they run."""

    project: Name = Field(description="The project's name. It is written into every ledger: keep it.")
    catalog: Catalog = Field(
        default_factory=SqliteCatalog, description="Where tables are registered. Default: embedded."
    )
    connections: dict[Name, Catalog] = Field(
        default_factory=dict, description="Named access to further catalogs."
    )
    spark: SparkSettings = Field(default_factory=SparkSettings)
    state: StateSettings = Field(default_factory=StateSettings)
    system_namespace: str | None = Field(
        None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$",
        description="Namespace of Esker's own tables (loaded files…). Default: beside each table.",
    )
    defaults: dict[str, Any] = Field(
        default_factory=dict,
        description="Keys that every pipeline has unless it says otherwise.",
        repr=False,
        exclude=True,
    )
    environments: dict[Name, dict[str, Any]] = Field(
        default_factory=dict,
        description="What differs in an environment, chosen by `--env`.",
        repr=False,
        exclude=True,
    )
    pipelines: dict[Name, Pipeline] = Field(default_factory=dict)

    _folder: Path = PrivateAttr(default=Path())
    _environment: str | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _catalogs_exist(self) -> Project:
        names = [self.catalog_name(None), *(self.catalog_name(name) for name in self.connections)]
        if len(set(names)) < len(names):
            raise ValueError("two catalogs have the same name; give one of them another name:")
        for name, pipeline in self.pipelines.items():
            if pipeline.catalog is not None and pipeline.catalog not in self.connections:
                guess = closest(pipeline.catalog, self.connections)
                hint = f'did you mean "{guess}"?' if guess else "declare it below connections:"
                raise MistakeAt(
                    ("pipelines", name, "catalog"), f'"{pipeline.catalog}" is no connection; {hint}'
                )
        return self

    @property
    def folder(self) -> Path:
        """The folder that relative paths begin at."""
        return self._folder

    @property
    def environment(self) -> str | None:
        """The environment that was chosen with `--env`."""
        return self._environment

    @property
    def state_key(self) -> str:
        """The project in the state database: each environment has runs and leases of its own."""
        return f"{self.project}@{self._environment}" if self._environment else self.project

    def placed(self, folder: Path, environment: str | None) -> Project:
        """Return this project, standing in a folder."""
        self._folder = folder
        self._environment = environment
        return self

    def catalog_name(self, connection: str | None) -> str:
        """Return the name under which Spark and PyIceberg see a catalog."""
        if connection is None:
            return self.catalog.name or DEFAULT_CATALOG
        return self.connections[connection].name or connection

    def catalogs(self) -> dict[str, Catalog]:
        """Return every catalog of the project by the name that Spark uses."""
        return {self.catalog_name(None): self.catalog} | {
            self.catalog_name(name): catalog for name, catalog in self.connections.items()
        }

    def pipeline(self, name: str) -> Pipeline:
        """Return a pipeline by name, or raise UnknownPipeline with the nearest name."""
        try:
            return self.pipelines[name]
        except KeyError:
            raise UnknownPipeline(name, list(self.pipelines), closest(name, self.pipelines)) from None

    def path(self, text: str) -> Path:
        """Return a path of the project file as an absolute one."""
        return (self.folder / Path(text).expanduser()).absolute()
