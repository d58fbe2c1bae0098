"""Every catalog and store that the promises are tried on, and what some servers cannot do."""

from __future__ import annotations

import itertools
import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from esker.errors import EskerError, InvalidProject, NotWithoutSpark
from tests.folder import Folder
from tests.servers import azurite, fake_gcs, moto
from tests.servers.cutting import Cutting, running_cutting

_numbers = itertools.count(1)
_ACCOUNT = "000000000000"


@dataclass(frozen=True)
class Lake:
    """A catalog with its store, empty, as a project declares it."""

    project: dict[str, Any]
    cutting: Cutting | None = None
    """A proxy before the catalog, where it is a server."""
    commit: bytes = b""
    """What stands in the request of a commit, and in no other."""
    secrets: tuple[str, ...] = ()
    """What nobody may ever see."""
    lock: dict[str, str] = field(default_factory=dict)
    """Properties of a lock that a server needs which does not compare by itself."""
    is_shared: bool = False
    """The server has one catalog, which all tests see."""
    is_keyed: bool = True
    """Tables are loaded by key there."""
    expires: bool = True
    """Iceberg expires snapshots there."""


@dataclass(frozen=True)
class Kind:
    """A kind of lake: how it is called and made, and what it cannot do."""

    title: str
    make: Callable[[pytest.FixtureRequest, Path, ExitStack], Lake] = field(repr=False)
    limits: dict[str, str] = field(default_factory=dict)
    """Why a capability is not there, in the words of the page. The suite sees to it that this is so."""
    unread: dict[str, str] = field(default_factory=dict)
    """Why a reader cannot open it, in the words of `esker export`."""


def _environment(request: pytest.FixtureRequest, **values: str) -> None:
    patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    for name, value in values.items():
        patch.setenv(name, value)


def _sqlite(request: pytest.FixtureRequest, folder: Path, stack: ExitStack) -> Lake:
    return Lake(
        {"catalog": {"type": "sqlite", "path": str(folder / "lake.db"), "warehouse": str(folder / "wh")}}
    )


def _hadoop(request: pytest.FixtureRequest, folder: Path, stack: ExitStack) -> Lake:
    return Lake({"catalog": {"type": "hadoop", "warehouse": str(folder / "wh")}}, is_keyed=False)


def _jdbc(request: pytest.FixtureRequest, folder: Path, stack: ExitStack) -> Lake:
    database = request.getfixturevalue("postgres").new_database()
    proxy = stack.enter_context(running_cutting("127.0.0.1", database.port))
    _environment(request, LAKE_PASSWORD=database.password)
    catalog = {
        "type": "jdbc",
        "url": f"jdbc:postgresql://127.0.0.1:{proxy.port}/{database.name}",
        "user": database.user,
        "password": "${LAKE_PASSWORD}",
        "warehouse": str(folder / "wh"),
    }
    return Lake({"catalog": catalog}, proxy, b"UPDATE iceberg_tables", (database.password,))


def _rest(request: pytest.FixtureRequest, folder: Path, stack: ExitStack) -> Lake:
    server = request.getfixturevalue("seaweedfs")
    proxy = stack.enter_context(running_cutting("127.0.0.1", server.rest_port))
    catalog = server.catalog(server.new_warehouse(), f"http://127.0.0.1:{proxy.port}")
    return Lake(
        {"catalog": catalog, "store": server.store()},
        proxy,
        b"/namespaces/shop/tables/works HTTP",
        (server.secret,),
    )


def _s3tables(request: pytest.FixtureRequest, folder: Path, stack: ExitStack) -> Lake:
    server = request.getfixturevalue("seaweedfs")
    proxy = stack.enter_context(running_cutting("127.0.0.1", server.rest_port))
    bucket = server.new_warehouse().removeprefix("s3://")
    catalog = {
        "type": "s3tables",
        "warehouse": f"arn:aws:s3tables:us-east-1:{_ACCOUNT}:bucket/{bucket}",
        "uri": f"http://127.0.0.1:{proxy.port}",
    }
    return Lake(
        {"catalog": catalog, "store": server.store()},
        proxy,
        b"/namespaces/shop/tables/works HTTP",
        (server.secret,),
    )


def _nessie(request: pytest.FixtureRequest, folder: Path, stack: ExitStack) -> Lake:
    server, files = request.getfixturevalue("nessie"), request.getfixturevalue("seaweedfs")
    proxy = stack.enter_context(running_cutting("127.0.0.1", int(server.rpartition(":")[2])))
    # Everything of a test is on a branch of the lake of its own.
    branch = _nessie_branch(server)
    catalog = {
        "type": "nessie",
        "uri": f"http://127.0.0.1:{proxy.port}/api/v2",
        "ref": branch,
        "warehouse": files.new_prefix(),
    }
    project = {"catalog": catalog, "store": files.store()}
    return Lake(project, proxy, b"/history/commit", (files.secret,), expires=False)


def _nessie_branch(server: str) -> str:
    """Make a branch of the lake."""

    def ask(path: str, body: Any = None) -> Any:
        request = urllib.request.Request(f"{server}/api/v2/{path}")
        if body is not None:
            request = urllib.request.Request(
                f"{server}/api/v2/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    main = ask("trees/main")["reference"]
    name = f"test{next(_numbers)}"
    ask(f"trees?name={name}&type=BRANCH", main)
    return name


def _hive(request: pytest.FixtureRequest, folder: Path, stack: ExitStack) -> Lake:
    proxy = stack.enter_context(running_cutting("127.0.0.1", request.getfixturevalue("hive")))
    catalog = {
        "type": "hive",
        "uri": f"thrift://127.0.0.1:{proxy.port}",
        "warehouse": str(folder / "wh"),
    }
    return Lake({"catalog": catalog}, proxy, b"alter_table", is_shared=True)


def _glue(request: pytest.FixtureRequest, folder: Path, stack: ExitStack) -> Lake:
    address = request.getfixturevalue("moto")
    proxy = stack.enter_context(running_cutting("127.0.0.1", int(address.rpartition(":")[2])))
    _environment(request, GLUE_KEY=moto.KEY, GLUE_SECRET=moto.SECRET)
    catalog = {
        "type": "glue",
        "warehouse": f"s3://{moto.BUCKET}/{next(_numbers)}",
        "endpoint": f"http://127.0.0.1:{proxy.port}",
    }
    store = {
        "type": "s3",
        "endpoint": address,
        "path_style": True,
        "access_key": "${GLUE_KEY}",
        "secret_key": "${GLUE_SECRET}",
    }
    return Lake(
        {"catalog": catalog, "store": store},
        proxy,
        b"AWSGlue.UpdateTable",
        (moto.SECRET,),
        {
            "lock-impl": "org.apache.iceberg.aws.dynamodb.DynamoDbLockManager",
            "lock.table": "esker_locks",
            "dynamodb.endpoint": address,
        },
        is_shared=True,
    )


def _on_s3(request: pytest.FixtureRequest, folder: Path, stack: ExitStack) -> Lake:
    server = request.getfixturevalue("seaweedfs")
    catalog = {"type": "sqlite", "path": str(folder / "lake.db"), "warehouse": server.new_prefix()}
    return Lake({"catalog": catalog, "store": server.store()}, secrets=(server.secret,))


def _on_gcs(request: pytest.FixtureRequest, folder: Path, stack: ExitStack) -> Lake:
    port = request.getfixturevalue("fake_gcs_port")
    name = f"lake{next(_numbers)}"
    fake_gcs.file_system(port).create_dir(name)
    catalog = {"type": "sqlite", "path": str(folder / "lake.db"), "warehouse": f"gs://{name}/wh"}
    store = {"type": "gcs", "endpoint": f"http://127.0.0.1:{port}", "project": "tests", "anonymous": True}
    return Lake({"catalog": catalog, "store": store})


def _on_azure(request: pytest.FixtureRequest, folder: Path, stack: ExitStack) -> Lake:
    port = request.getfixturevalue("azurite_port")
    name = f"lake{next(_numbers)}"
    azurite.file_system(port).create_dir(name)
    _environment(request, AZURE_KEY=azurite.KEY)
    home = f"abfss://{name}@{azurite.ACCOUNT}.dfs.core.windows.net/wh"
    store = {
        "type": "azure",
        "account": azurite.ACCOUNT,
        "account_key": "${AZURE_KEY}",
        "endpoint": f"http://127.0.0.1:{port}",
    }
    catalog = {"type": "sqlite", "path": str(folder / "lake.db"), "warehouse": home}
    return Lake({"catalog": catalog, "store": store}, secrets=(azurite.KEY,))


NO_SERVER = "no server, so there is no answer to lose"
_FOLDERS = "refused: the catalog does not keep two writers apart, so table and change log could differ"
_ONE_WRITER = (
    "not promised: the catalog is for one writer at a time, as `esker check` says; threads of one process "
    "are kept apart, processes are not"
)
_NO_VERSIONS = (
    "tried behind a lock (`lock-impl` of Iceberg's in `properties`): moto's Glue compares no versions, and "
    "loses one of two commits of the same moment; Amazon's own compares them"
)
_NO_GC = (
    "Nessie switches `gc.enabled` off for its tables, and Iceberg refuses to expire their snapshots then; "
    "Nessie's own GC tool does that"
)
_PUFFIN = "the table bucket of SeaweedFS 4.48 takes no `.puffin` files, so use format version 2 there"

_GOOGLE = "PyIceberg opens Google's store with credentials, and never without"
_AZURE = "PyIceberg reads tables in Azure at Microsoft's own servers only"
_NESSIE = (
    "PyIceberg does not speak Nessie's own protocol; where the server also answers at …/iceberg, declare "
    "that address as a connection of type rest"
)
_NO_SQLITE = "Trino has no driver for SQLite; it needs a catalog of another type"
_NOT_AMAZON = (
    "DuckDB signs requests to Amazon's own servers only: it reads service and region from the address"
)


def _not_in_duckdb(kind: str) -> str:
    return (
        f"DuckDB cannot open a catalog of type {kind}; where PyIceberg can, read the tables with that "
        "(esker export pyiceberg)"
    )


KINDS: dict[str, Kind] = {
    "sqlite": Kind("sqlite, folders", _sqlite, {"lost answer": NO_SERVER}, {"trino": _NO_SQLITE}),
    "sqlite-s3": Kind("sqlite, S3 (SeaweedFS)", _on_s3, {"lost answer": NO_SERVER}, {"trino": _NO_SQLITE}),
    "sqlite-gcs": Kind(
        "sqlite, Google (fake-gcs-server)",
        _on_gcs,
        {"lost answer": NO_SERVER, "read without Spark": _GOOGLE},
        {"trino": _NO_SQLITE, "pyiceberg": _GOOGLE},
    ),
    "sqlite-azure": Kind(
        "sqlite, Azure (Azurite)",
        _on_azure,
        {"lost answer": NO_SERVER, "read without Spark": _AZURE},
        {
            "trino": _NO_SQLITE,
            "duckdb": "DuckDB's Iceberg reads no tables in Azure",
            "pyiceberg": _AZURE,
        },
    ),
    "jdbc": Kind("jdbc (PostgreSQL 15), folders", _jdbc, unread={"duckdb": _not_in_duckdb("jdbc")}),
    "rest": Kind("rest (SeaweedFS, OAuth2), S3", _rest, {"version 3": _PUFFIN}),
    "s3tables": Kind(
        "s3tables (SeaweedFS, SigV4), S3", _s3tables, {"version 3": _PUFFIN}, {"duckdb": _NOT_AMAZON}
    ),
    "nessie": Kind(
        "nessie (0.99), S3",
        _nessie,
        {"expire": _NO_GC, "read without Spark": _NESSIE},
        {
            "duckdb": _not_in_duckdb("nessie"),
            "pyiceberg": _NESSIE,
        },
    ),
    "hive": Kind("hive (Metastore 2.3), folders", _hive, unread={"duckdb": _not_in_duckdb("hive")}),
    "glue": Kind("glue (moto), S3", _glue, {"race": _NO_VERSIONS}, {"duckdb": _NOT_AMAZON}),
    "hadoop": Kind(
        "hadoop, folders",
        _hadoop,
        {"lost answer": NO_SERVER, "race": _ONE_WRITER}
        | dict.fromkeys(("upsert", "sync", "change log", "version 3"), _FOLDERS),
        {
            "trino": "Trino has no catalog of folders; it needs a catalog of another type",
            "duckdb": _not_in_duckdb("hadoop"),
            "pyiceberg": "PyIceberg has no catalog of folders",
        },
    ),
}


@dataclass(frozen=True)
class Met:
    """How a limit is met: what is said, and what is in the table afterwards."""

    error: type[Exception]
    words: str
    ids: range | None = range(6)
    """None where no table is made."""


MET = {
    _PUFFIN: Met(EskerError, ".puffin"),
    _NO_GC: Met(Py4JJavaError, "GC is disabled"),
    _FOLDERS: Met(InvalidProject, "does not keep two writers apart", None),
    **{why: Met(NotWithoutSpark, why) for why in (_GOOGLE, _AZURE, _NESSIE)},
}
"""Refused clearly, and never half done."""


@contextmanager
def made(name: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Lake]:
    """Make an empty lake of a kind."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        lake = KINDS[name].make(request, folder, stack)
        try:
            yield lake
        finally:
            if lake.is_shared:
                _empty(lake, folder / "emptied")


def _empty(lake: Lake, folder: Path) -> None:
    spark = Folder(folder, **lake.project).open().engine.spark
    for space in spark.sql("SHOW NAMESPACES IN lake").collect():
        if space.namespace == "shop":
            for table in spark.sql("SHOW TABLES IN lake.shop").collect():
                spark.sql(f"DROP TABLE lake.shop.{table.tableName}")
            spark.sql("DROP NAMESPACE lake.shop")
