"""The project file as a whole: everything that a user declares, after checking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, model_validator

from esker.errors import ManyPipelines, UnknownPipeline
from esker.project.catalogs import Catalog, JdbcCatalog, RestCatalog, SqliteCatalog
from esker.project.contract.model import Contract
from esker.project.declaration import Declaration, MistakeAt, Name
from esker.project.families import Family, Member
from esker.project.pipelines import Pipeline
from esker.project.settings import SparkSettings, StateSettings
from esker.project.sources import FilesSource
from esker.project.stores import AzureStore, FileStore, GcsStore, S3Store, Store
from esker.project.suggest import closest

DEFAULT_CATALOG = "lake"
_STORES = (S3Store, GcsStore, AzureStore)

Connection = Annotated[
    SqliteCatalog | JdbcCatalog | RestCatalog | S3Store | GcsStore | AzureStore,
    Field(discriminator="type"),
]


class Project(Declaration):
    """A folder with an `esker.yml`: connections, pipelines and where they run."""

    project: Name = Field(description="The project's name. It is written into every ledger: keep it.")
    catalog: Catalog = Field(
        default_factory=SqliteCatalog, description="Where tables are registered. Default: embedded."
    )
    store: Store | None = Field(
        None, description="Where the files of tables lie, if not in folders: an S3 store."
    )
    connections: dict[Name, Connection] = Field(
        default_factory=dict, description="Named access to further catalogs and stores."
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
    _contracts: dict[str, Contract] = PrivateAttr(default_factory=dict)
    _families: Mapping[str, Family] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _catalogs_exist(self) -> Project:
        further = self._further_catalogs()
        names = [self.catalog_name(None), *(self.catalog_name(name) for name in further)]
        if len(set(names)) < len(names):
            raise ValueError("two catalogs have the same name; give one of them another name:")
        for name, pipeline in self.pipelines.items():
            if pipeline.catalog is not None and pipeline.catalog not in further:
                message = f'"{pipeline.catalog}" is no connection to a catalog; '
                guess = closest(pipeline.catalog, further)
                message += f'did you mean "{guess}"?' if guess else "declare it below connections:"
                raise MistakeAt(("pipelines", name, "catalog"), message)
        return self

    @model_validator(mode="after")
    def _stores_exist(self) -> Project:
        stores = [name for name, kind in self.connections.items() if isinstance(kind, S3Store)]
        places: dict[tuple[str, ...], Catalog] = {("catalog",): self.catalog}
        places |= {("connections", name): catalog for name, catalog in self._further_catalogs().items()}
        for place, catalog in places.items():
            if catalog.store is not None and catalog.store not in stores:
                guess = closest(catalog.store, stores)
                hint = f'did you mean "{guess}"?' if guess else "declare it below connections:"
                raise MistakeAt((*place, "store"), f'"{catalog.store}" is no connection to a store; {hint}')
            store = self.store_of(catalog)
            if store is not None and store.anonymous:
                raise MistakeAt((*place, "store"), "nobody writes tables without a key; leave out anonymous:")
            if (catalog.warehouse or "").startswith("s3://") and self.store_of(catalog) is None:
                raise MistakeAt(
                    (*place, "warehouse"),
                    "the warehouse is in S3: say how to reach it, with store: {type: s3} at the top of the "
                    "file and what it needs",
                )
        return self

    @model_validator(mode="after")
    def _sources_are_reached(self) -> Project:
        stores = {name: kind for name, kind in self.connections.items() if isinstance(kind, _STORES)}
        for name, pipeline in self.pipelines.items():
            source = pipeline.source
            if not isinstance(source, FilesSource) or source.connection is None:
                continue
            place = ("pipelines", name, "source", "connection")
            store, address = stores.get(source.connection), source.address
            if store is None:
                guess = closest(source.connection, stores)
                hint = f'did you mean "{guess}"?' if guess else "declare it below connections:"
                raise MistakeAt(place, f'"{source.connection}" is no connection to a store; {hint}')
            assert address is not None, "the source was checked"
            if store.type != address.kind:
                raise MistakeAt(
                    place, f'"{source.connection}" is of type {store.type}, and the path of {address.kind}'
                )
            if isinstance(store, AzureStore) and address.account not in (None, store.account):
                raise MistakeAt(
                    place,
                    f'"{source.connection}" is account {store.account}, and the path of {address.account}',
                )
        return self

    def _further_catalogs(self) -> dict[str, Catalog]:
        return {name: kind for name, kind in self.connections.items() if not isinstance(kind, _STORES)}

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

    def placed(
        self,
        folder: Path,
        environment: str | None,
        contracts: Mapping[str, Contract] | None = None,
        families: Mapping[str, Family] | None = None,
    ) -> Project:
        """Return this project, standing in a folder, with the contracts of its pipelines."""
        self._folder = folder
        self._environment = environment
        self._contracts = dict(contracts or {})
        self._families = families or {}
        return self

    @property
    def families(self) -> Mapping[str, Family]:
        """Entries that stand for many pipelines. These are in `pipelines` once they are known."""
        return self._families

    def family_of(self, name: str) -> Family | None:
        """Return the family that a name belongs to: its own, or that of one of its pipelines."""
        return self._families.get(name.partition(".")[0])

    def join(self, family: Family, members: Iterable[Member]) -> None:
        """Have exactly these pipelines of a family."""
        for name in [name for name in self.pipelines if name.startswith(f"{family.name}.")]:
            del self.pipelines[name]
            self._contracts.pop(name, None)
        for member in members:
            self.pipelines[member.name] = member.pipeline
            if member.contract is not None:
                self._contracts[member.name] = member.contract

    def contract(self, pipeline: str) -> Contract | None:
        """Return the contract of a pipeline, if it has one."""
        return self._contracts.get(pipeline)

    def catalog_name(self, connection: str | None) -> str:
        """Return the name under which Spark and PyIceberg see a catalog."""
        if connection is None:
            return self.catalog.name or DEFAULT_CATALOG
        return self._further_catalogs()[connection].name or connection

    def catalogs(self) -> dict[str, Catalog]:
        """Return every catalog of the project by the name that Spark uses."""
        return {self.catalog_name(None): self.catalog} | {
            self.catalog_name(name): catalog for name, catalog in self._further_catalogs().items()
        }

    def store_of(self, catalog: Catalog) -> Store | None:
        """Return the store that has the files of a catalog's tables; None for folders."""
        if catalog.store is None:
            return self.store
        found = self.connections[catalog.store]
        assert isinstance(found, S3Store)
        return found

    def store_connection(self, name: str | None) -> FileStore | None:
        """Return a store that files are read from; None for what the environment says."""
        if name is None:
            return None
        found = self.connections[name]
        assert isinstance(found, _STORES), "the project was checked"
        return found

    def pipeline(self, name: str) -> Pipeline:
        """Return a pipeline by name, or raise UnknownPipeline with the nearest name."""
        if name in self._families:
            raise ManyPipelines(name, [each for each in self.pipelines if each.startswith(f"{name}.")])
        try:
            return self.pipelines[name]
        except KeyError:
            raise self._unknown(name) from None

    def check_name(self, name: str) -> None:
        """Raise UnknownPipeline for what is neither a pipeline, nor a family, nor may be one of its own."""
        if name not in self.pipelines and self.family_of(name) is None:
            raise self._unknown(name)

    def _unknown(self, name: str) -> UnknownPipeline:
        known = [*self.pipelines, *self._families]
        return UnknownPipeline(name, known, closest(name, known))

    def path(self, text: str) -> Path:
        """Return a path of the project file as an absolute one."""
        return (self.folder / Path(text).expanduser()).absolute()
