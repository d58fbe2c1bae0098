"""Check jars, stores, sources in stores, Spark and catalogs, where PySpark and Java are found."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from esker.engine.catalogs import Binding, bind
from esker.engine.folders import make_writable
from esker.engine.iceberg.credentials import store_of_catalog
from esker.engine.jars import jar_folder, missing_jars, provide_jars
from esker.engine.logs import new_log
from esker.engine.session import Engine, needed_jars
from esker.engine.store import Store, try_store
from esker.pipeline.doctor import Finding, checked
from esker.project import Project
from esker.project.sources import FilesSource
from esker.sources.files.places import place_of

_GIB = 1024**3
_LITTLE_SPACE = 1 * _GIB


def examine_with_spark(project: Project, patience: int) -> Iterator[Finding]:
    """Check jars, stores, Spark and catalogs, in this order; what depends on a failed piece is not tried.

    Spark gets `patience` seconds for a first small job.
    """
    bound = [checked(f"keys of {name}", partial(_bound, project, name)) for name in project.catalogs()]
    if not all(finding.ok for finding in bound):
        yield from (finding for finding in bound if not finding.ok)
        return
    jars = checked("jars", lambda: _jars(project))
    yield jars
    usable = []
    for name, catalog in project.catalogs().items():
        stores = list(_stores(name, bind(catalog, project)))
        yield from stores
        if all(store.ok for store in stores):
            usable.append(name)
    yield from sources_in_stores(project)
    if not jars.ok:
        return
    engines: list[Engine] = []
    yield checked("spark", lambda: _spark(project, engines))
    for engine in engines:
        yield checked("spark job", partial(_job, engine, patience))
        for name in usable:
            place = _place_of_client(engine.bindings[name])
            if place is not None:
                yield checked(f"store of {name}", partial(_by_client, engine, name, place))
            yield checked(f"catalog {name}", partial(_catalog, engine, name))


def _bound(project: Project, name: str) -> str:
    """See whether the keys of a catalog can be found."""
    return bind(project.catalogs()[name], project).warehouse


def sources_in_stores(project: Project) -> Iterator[Finding]:
    """List the files of each pipeline that reads from a store."""
    for name, pipeline in project.pipelines.items():
        source = pipeline.source
        if isinstance(source, FilesSource) and source.address is not None:
            yield checked(f"source of {name}", partial(_listed, project, name, source))


def _listed(project: Project, name: str, source: FilesSource) -> str:
    count = len(place_of(project, name, source).list())
    return f"{count} file{'' if count == 1 else 's'} match {source.path}"


def _jars(project: Project) -> str:
    names = needed_jars(project)
    fetched = len(missing_jars(names))
    provide_jars(names, project.spark.conf, new_log(project.folder / ".esker" / "logs"))
    return f"{len(names)} in {jar_folder()}" + (f", {fetched} fetched now" if fetched else "")


def _spark(project: Project, engines: list[Engine]) -> str:
    engine = Engine.start(project)
    engines.append(engine)
    return f"{engine.spark.version} on {engine.spark.sparkContext.master}"


def _job(engine: Engine, patience: int) -> str:
    started = time.monotonic()
    engine.try_job(patience)
    return f"one task done after {time.monotonic() - started:.1f} s"


def _catalog(engine: Engine, name: str) -> str:
    engine.open_catalog(name)
    return engine.bindings[name].warehouse


def _stores(name: str, binding: Binding) -> Iterator[Finding]:
    """Check the folders that a catalog writes to, and the bucket."""
    if binding.folders:
        yield _folders(f"store of {name}" if binding.bucket is None else f"folder of {name}", binding.folders)
    if binding.bucket is not None and _place_of_client(binding) is None:
        yield checked(
            f"store of {name}", partial(_tried, binding, Store.of(binding.settings), binding.bucket)
        )


def _place_of_client(binding: Binding) -> str | None:
    """Return where a catalog keeps its tables if only Iceberg's own client, with Spark, gets there."""
    is_hadoop = binding.warehouse.startswith(("hdfs:", "viewfs:"))
    place = binding.warehouse if is_hadoop else binding.bucket
    return place if place is not None and not Store.of(binding.settings).can_reach(place) else None


def _by_client(engine: Engine, name: str, place: str) -> str:
    return _tried(engine.bindings[name], store_of_catalog(engine, name), place)


def _tried(binding: Binding, store: Store, place: str) -> str:
    # Servers with a REST catalog may take only the files of tables.
    writes = binding.settings["type"] != "rest"
    try_store(store, place, writes=writes)
    return f"{place} can be {'written' if writes else 'listed'}"


def _folders(check: str, folders: Sequence[Path]) -> Finding:
    writable = checked(check, partial(_writable, folders))
    if not writable.ok:
        return writable
    free = min(shutil.disk_usage(folder).free for folder in folders)
    enough = free >= _LITTLE_SPACE
    remedy = "" if enough else "Free some space: a load that fills the disk fails."
    return Finding(check, enough, f"{writable.detail}, {free / _GIB:.1f} GiB free", remedy)


def _writable(folders: Sequence[Path]) -> str:
    for folder in folders:
        make_writable(folder)
    return str(folders[-1])
