"""The project file as a whole: everything that a user declares, after checking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, model_validator

from esker.errors import ManyPipelines, UnknownConsumer, UnknownPipeline
from esker.project.catalogs import (
    AnyCatalog,
    Catalog,
    GlueCatalog,
    HadoopCatalog,
    RestCatalog,
    S3TablesCatalog,
    SqliteCatalog,
)
from esker.project.connections import AnyServer
from esker.project.consumers import Consumer
from esker.project.contract.model import Contract
from esker.project.declaration import Declaration, MistakeAt, Name
from esker.project.families import Family, Member
from esker.project.pipelines import Pipeline
from esker.project.settings import SparkSettings, StateSettings
from esker.project.sources import FilesSource
from esker.project.stores import AzureStore, FileStore, GcsStore, S3Store, Store
from esker.project.suggest import closest
from esker.project.warehouses import SCHEMES, store_kind

DEFAULT_CATALOG = "lake"
_STORES = (S3Store, GcsStore, AzureStore)

Connection = Annotated[AnyCatalog | FileStore | AnyServer, Field(discriminator="type")]


class Project(Declaration):
    """A folder with an `esker.yml`: connections, pipelines and where they run."""

    project: Name = Field(description="The project's name. It is written into every ledger: keep it.")
    catalog: Catalog = Field(
        default_factory=SqliteCatalog, description="Where tables are registered. Default: embedded."
    )
    store: Store | None = Field(
        None,
        description="Where the files of tables lie, if not in folders: S3, Google Cloud Storage or Azure.",
    )
    connections: dict[Name, Connection] = Field(
        default_factory=dict,
        description="Named access to further catalogs and stores, and to servers that targets deliver to.",
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
    consumers: dict[Name, Consumer] = Field(
        default_factory=dict, description="Who is told of changes, by `esker deliver`."
    )

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
        stores = [name for name, kind in self.connections.items() if isinstance(kind, _STORES)]
        for place, catalog in self._catalog_places().items():
            if catalog.store is not None and catalog.store not in stores:
                guess = closest(catalog.store, stores)
                hint = f'did you mean "{guess}"?' if guess else "declare it below connections:"
                raise MistakeAt((*place, "store"), f'"{catalog.store}" is no connection to a store; {hint}')
            self._check_store(place, catalog)
        return self

    def _check_store(self, place: tuple[str, ...], catalog: Catalog) -> None:
        """See that a catalog has the store that its warehouse needs, and a way into both."""
        store, kind = self.store_of(catalog), store_kind(catalog.warehouse)
        if kind is not None and store is None:
            words = {"s3": "in S3", "gcs": "in Google Cloud Storage", "azure": "in Azure"}[kind]
            raise MistakeAt(
                (*place, "warehouse"),
                f"the warehouse is {words}: say how to reach it, with store: {{type: {kind}}} at the top of "
                "the file and what it needs",
            )
        if kind is not None and store is not None and store.type != kind:
            raise MistakeAt(
                (*place, "warehouse"),
                f"the store is of type {store.type}, and the warehouse of {kind}; write "
                f"{SCHEMES[store.type]}, or name another store",
            )
        if store is None or not self._uses_store(catalog):
            return
        if (why := store.why_not_for_tables()) is not None:
            raise MistakeAt((*place, "store"), why)
        if isinstance(store, AzureStore) and kind == "azure":
            account = (catalog.warehouse or "").partition("@")[2].partition(".")[0]
            if account != store.account:
                raise MistakeAt(
                    (*place, "warehouse"),
                    f"the store is account {store.account}, and the warehouse of {account}",
                )
        self._check_aws(place, catalog, store)

    @staticmethod
    def _check_aws(place: tuple[str, ...], catalog: Catalog, store: Store) -> None:
        signs = isinstance(catalog, S3TablesCatalog) or (
            isinstance(catalog, RestCatalog) and catalog.sigv4 is not None
        )
        assumes = isinstance(store, S3Store) and store.role is not None
        if isinstance(catalog, S3TablesCatalog) and not isinstance(store, S3Store):
            raise MistakeAt((*place, "store"), f"S3 Tables are in S3, and the store is of type {store.type}")
        if signs and assumes:
            raise MistakeAt(
                (*place, "store"),
                "Iceberg's client does not sign requests with role:; let the AWS environment assume the "
                "role, or write keys or a profile",
            )
        if isinstance(catalog, GlueCatalog) and catalog.endpoint is not None and assumes:
            raise MistakeAt(
                (*place, "endpoint"),
                "Iceberg's client does not go to endpoint: with role:; set AWS_ENDPOINT_URL_GLUE in the "
                "environment instead",
            )
        if isinstance(catalog, RestCatalog) and catalog.vended_credentials:
            given = isinstance(store, AzureStore) and (store.account_key or store.sas_token)
            if given or (isinstance(store, S3Store) and store.has_way_in and not signs):
                raise MistakeAt(
                    (*place, "vended_credentials"),
                    "the server hands out the keys, and the store has keys too: leave one of them out",
                )

    def _uses_store(self, catalog: Catalog) -> bool:
        """Tell whether a catalog's files are in its store: those of some are in folders."""
        named = catalog.store is not None or store_kind(catalog.warehouse) is not None
        return named or isinstance(catalog, RestCatalog | S3TablesCatalog)

    @model_validator(mode="after")
    def _one_glue(self) -> Project:
        """Glue's client takes keys from the process it runs in: all must agree there."""
        keyed = [
            (place, store)
            for place, catalog in self._catalog_places().items()
            if isinstance(catalog, GlueCatalog)
            and isinstance(store := self.store_of(catalog), S3Store)
            and (store.access_key is not None or store.profile is not None)
        ]
        for place, catalog in self._catalog_places().items() if keyed else ():
            store = self.store_of(catalog)
            if not isinstance(store, S3Store) or not self._uses_store(catalog):
                continue
            if isinstance(catalog, GlueCatalog) and store != keyed[0][1]:
                raise MistakeAt((*place, "store"), "all Glue catalogs of a project have the same keys")
            vended = isinstance(catalog, RestCatalog) and catalog.vended_credentials
            if not store.has_way_in and not vended:
                raise MistakeAt(
                    (*place, "store"),
                    "beside a Glue catalog with keys, every store needs keys or a profile: otherwise it "
                    "would be opened with Glue's",
                )
        return self

    @model_validator(mode="after")
    def _modes_are_safe(self) -> Project:
        for name, pipeline in self.pipelines.items():
            if pipeline.is_keyed and (why := self.why_not_keyed(pipeline)) is not None:
                raise MistakeAt(("pipelines", name, "mode"), why)
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

    @model_validator(mode="after")
    def _consumers_are_told(self) -> Project:
        for name, consumer in self.consumers.items():
            place = ("consumers", name)
            # One of a family's pipelines is known when its database has been asked.
            first, _, member = consumer.source.partition(".")
            if first not in self.pipelines:
                guess = closest(consumer.source, self.pipelines)
                hint = f'did you mean "{guess}"?' if guess else "declare it below pipelines:"
                raise MistakeAt((*place, "from"), f'"{consumer.source}" is no pipeline; {hint}')
            consumer.to.check_connection(self.connections, (*place, "to"))
            if not member:
                try:
                    consumer.check_source(self.pipelines[first])
                except MistakeAt as mistake:
                    raise MistakeAt((*place, *mistake.path), str(mistake)) from None
        return self

    def consumer(self, name: str) -> Consumer:
        """Return a consumer by name, or raise UnknownConsumer with the nearest name."""
        try:
            return self.consumers[name]
        except KeyError:
            raise UnknownConsumer(name, list(self.consumers), closest(name, self.consumers)) from None

    def _catalog_places(self) -> dict[tuple[str, ...], Catalog]:
        places: dict[tuple[str, ...], Catalog] = {("catalog",): self.catalog}
        return places | {("connections", name): found for name, found in self._further_catalogs().items()}

    def catalog_of(self, connection: str | None) -> Catalog:
        """Return a catalog by the name that pipelines use."""
        return self.catalog if connection is None else self._further_catalogs()[connection]

    def running_on(self, master: str) -> Project:
        """Return the same project, with Spark elsewhere: a platform may have decided that."""
        return self.model_copy(update={"spark": self.spark.model_copy(update={"master": master})})

    def has_catalog(self, connection: str) -> bool:
        """Tell whether a connection is a catalog."""
        return connection in self._further_catalogs()

    def why_not_keyed(self, pipeline: Pipeline, table: Mapping[str, str] | None = None) -> str | None:
        """Return why rows cannot be loaded by key into a pipeline's catalog, if so.

        `table` are the properties of the table as it is; without it, as it would be made.
        """
        properties = pipeline.properties if table is None else table
        return self.catalog_of(pipeline.catalog).why_not_keyed(properties)

    def warnings(self) -> tuple[str, ...]:
        """Return what people should know of catalogs, sources and contracts before they use them."""
        of_catalogs = (
            f"catalog {name}: {warning}"
            for name, catalog in self.catalogs().items()
            for warning in catalog.warnings()
        )
        of_contracts = (
            f"{contract.file}: {note}" for contract in self._contracts.values() for note in contract.notes
        )
        of_sources = (
            f"{name}: {warning}"
            for name, entry in (*self.pipelines.items(), *((n, f.base) for n, f in self.families.items()))
            for warning in entry.source.warnings()
        )
        return tuple(dict.fromkeys((*of_catalogs, *of_sources, *of_contracts)))

    def _further_catalogs(self) -> dict[str, Catalog]:
        return {name: kind for name, kind in self.connections.items() if isinstance(kind, AnyCatalog)}

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

    def find_table(self, name: str, catalog: str | None = None) -> tuple[str, str]:
        """Return catalog and name of a table: a pipeline's, one whose first part names its catalog, or one of
        `catalog`."""
        for pipeline in self.pipelines.values():
            if pipeline.table == name:
                return self.catalog_name(pipeline.catalog), name
        first, _, rest = name.partition(".")
        if first in self.catalogs() and "." in rest:
            return first, rest
        return self.catalog_name(catalog), name

    def pipeline_into(self, catalog: str, table: str) -> Pipeline | None:
        """Return a pipeline that loads into a table, if there is one."""
        for pipeline in self.pipelines.values():
            if (self.catalog_name(pipeline.catalog), pipeline.table) == (catalog, table):
                return pipeline
        return None

    def warehouse_of(self, catalog: Catalog) -> str:
        """Return where a catalog's warehouse is, a folder as a path."""
        place = catalog.warehouse or ""
        is_named = store_kind(place) is not None or ":" in place
        return place if is_named else str(self.path(place).resolve())

    def store_of(self, catalog: Catalog) -> Store | None:
        """Return the store that has the files of a catalog's tables; None for folders."""
        if isinstance(catalog, HadoopCatalog):
            return None
        if catalog.store is None:
            return self.store
        found = self.connections[catalog.store]
        assert isinstance(found, _STORES)
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
