"""Spark for a project: one Spark in the process, one session per project.

Sessions share the JVM, its memory and its jars; each has its own catalogs and settings. So a program
may open several projects, and a test process needs Spark once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.conf import SparkConf
from pyspark.sql import SparkSession

from esker.engine.catalogs import Binding, bind
from esker.engine.class_archive import archive_of, make_at_end, use_or_make
from esker.engine.cluster import check_cluster
from esker.engine.compat import silence_queries
from esker.engine.compat.staging import STAGING_CLASS
from esker.engine.driver_options import brief_options
from esker.engine.failures import explain, explained
from esker.engine.folders import make_writable
from esker.engine.gateway import PLATFORM_LOG, launch, stop
from esker.engine.iceberg.client import Clients
from esker.engine.iceberg.handles import Handles
from esker.engine.iceberg.rounds import rounds
from esker.engine.jars import provide_jars
from esker.engine.java import Java, find_java
from esker.engine.known_names import know_names
from esker.engine.local_files import use_plain_files
from esker.engine.logs import log4j_settings, new_log
from esker.engine.machine import cores, default_driver_memory
from esker.engine.pins import check_spark
from esker.engine.platform import is_submitted
from esker.engine.submitted import new_context, submitted_master
from esker.errors import (
    CatalogUnreachable,
    ClusterUnreachable,
    ClusterWithoutRoom,
    JarNotLoaded,
    KeysOfAnother,
    SecretOnCommandLine,
    SparkFailed,
)
from esker.project import Project
from esker.project.secrets import redact

STAGING_CATALOG = "esker_staging"
"""A catalog of Iceberg's for tables held in memory: writing to it makes files and no commit."""

_start = threading.Lock()

_TRIES = 5
_MADE_TWICE = ("duplicate column", "already exists")
"""What databases say when somebody else has made the same thing a moment before."""
COMPILE_ALL = "-XX:-DontCompileHugeMethods"
"""Spark makes one method of a stage. Java does not compile methods of more than 8,000 bytes unless told to:
a stage with twenty rules took three times as long."""
MEANING = {
    "spark.sql.session.timeZone": "UTC",
    # Text that is no number is found and reported by the checks, row by row.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    # Rows that come to Java's side of the driver: its older classes lack ten days of 1582.
    "spark.sql.datetime.java8API.enabled": "true",
    # Spark 3.5 fails where Spark 2 would have read a date otherwise; Spark 4 reads it as it is written.
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    # Spark 4 knows seven character sets unless told to ask Java; windows-1252 is none of them.
    "spark.sql.legacy.javaCharsets": "true",
    # Spark 3.5 refuses dates before 1582 unless told that nobody wrote them by another calendar.
    **{
        f"spark.sql.{kind}.{what}RebaseModeIn{way}": "CORRECTED"
        for kind, what in (("parquet", "datetime"), ("parquet", "int96"), ("avro", "datetime"))
        for way in ("Read", "Write")
    },
}
"""Settings on which the meaning of values depends, for all sessions: Spark 3.5 asks whichever it finds when
an expression is made."""


class Engine:
    """Spark, set up for one project. Made by `Engine.start`; stopped with the process."""

    def __init__(self, project: Project, spark: SparkSession, log: Path) -> None:
        self.project = project
        self.spark = spark
        self.log = log
        self._catalogs: dict[str, Any] = {}
        self.handles = Handles()
        self.clients = Clients(spark)
        self.bindings: dict[str, Binding] = {
            name: bind(catalog, project) for name, catalog in project.catalogs().items()
        }

    @classmethod
    def start(cls, project: Project, *, is_brief: bool = False) -> Engine:
        """Start Spark for a project, or give it a session of the Spark that already runs.

        One that is started for brief work saves what pays for itself only over minutes.

        Raises SparkUnsupported, JavaUnsuitable, JarsUnavailable, JarNotLoaded, ClusterUnreachable or
        SparkFailed.
        """
        check_spark()
        silence_queries()
        if is_submitted():
            project = project.running_on(submitted_master())
        with _start:
            context = SparkContext._active_spark_context
            if context is None and is_submitted():
                context, log = new_context(project, startup_settings(project), MEANING), Path(PLATFORM_LOG)
            elif context is None:
                context, log = _start_context(project, is_brief=is_brief)
            else:
                log = Path(_note(context, "log") or PLATFORM_LOG)
                _check_jars(project, _note(context, "jars").split(","))
            use_plain_files(context)
            know_names(context)
            # A session of its own, so that no setting of one project reaches another.
            engine = cls(project, SparkSession(context).newSession(), log)
        engine._configure()
        return engine

    def cancel(self) -> None:
        """Stop every job that runs for this process; called after an interruption."""
        # From a thread of its own: this one's connection to Java still waits for the broken call's answer.
        context = self.spark.sparkContext
        thread = threading.Thread(target=context.cancelAllJobs, name="esker-cancel", daemon=True)
        thread.start()
        thread.join(timeout=10)

    def try_job(self, patience: int) -> None:
        """Run one task, or raise ClusterWithoutRoom when it is not done after `patience` seconds.

        Spark itself waits for executors without end, and says so only in its log.
        """
        done: Future[int] = Future()

        def work() -> None:
            try:
                done.set_result(self.spark.range(1).count())
            except Exception as error:
                done.set_exception(error)

        threading.Thread(target=work, name="esker-job", daemon=True).start()
        master = self.project.spark.master
        try:
            with explained("a small job failed", self.log, master=master):
                done.result(patience)
        except TimeoutError:
            self.cancel()
            raise ClusterWithoutRoom(master, patience, str(self.log)) from None

    def iceberg_catalog(self, name: str) -> Any:
        """Return Iceberg's own object for a catalog. It never leaves the engine."""
        if name not in self._catalogs:
            session: Any = self.spark
            util = session.sparkContext._jvm.org.apache.iceberg.spark.Spark3Util
            self._catalogs[name] = util.loadIcebergCatalog(session._jsparkSession, name)
        return self._catalogs[name]

    @cached_property
    def is_alone(self) -> bool:
        """Spark works in one process: what it keeps is lost with the run, and never on its own."""
        context: Any = self.spark.sparkContext
        return bool(context._jsc.sc().isLocal())

    @cached_property
    def heap(self) -> int:
        """The most bytes that Java's heap of the driver may have."""
        jvm: Any = self.spark.sparkContext._jvm
        return int(jvm.java.lang.Runtime.getRuntime().maxMemory())

    def has_loaded(self) -> None:
        """Say that rows were loaded: Java has the classes now that the next run will need."""
        make_at_end(self.spark.sparkContext)

    def open_catalog(self, name: str) -> None:
        """Make sure, once, that a catalog answers and its folders can be written.

        Raises CatalogUnreachable or StoreNotWritable.
        """
        if name in self._catalogs:
            return
        binding = self.bindings[name]
        for folder in binding.folders:
            make_writable(folder)
        for may_try in rounds(_TRIES):
            try:
                self.spark.sql(f"SHOW NAMESPACES IN `{name}`").collect()
                self.iceberg_catalog(name)
            except Exception as error:
                cause = explain(error, self.log)
                told = cause.reason or cause.message
                # Two processes that open a new catalog at once both make its tables, and one is too late.
                if may_try and any(sign in told.lower() for sign in _MADE_TWICE):
                    continue
                raise CatalogUnreachable(name, told) from error
            else:
                return

    def _configure(self) -> None:
        conf = self.spark.conf
        for key, value in MEANING.items():
            conf.set(key, value)
        conf.set("spark.sql.shuffle.partitions", str(max(2, 2 * cores(self.project.spark.master))))
        # Rows that are kept together: ten thousand of a kilobyte take tens of megabytes in every task.
        conf.set("spark.sql.inMemoryColumnarStorage.batchSize", "2000")
        conf.set(f"spark.sql.catalog.{STAGING_CATALOG}", STAGING_CLASS)
        for name, binding in self.bindings.items():
            conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
            # Other processes write too; a cached table would be planned from the past.
            conf.set(f"spark.sql.catalog.{name}.cache-enabled", "false")
            for key, value in binding.settings.items():
                conf.set(f"spark.sql.catalog.{name}.{key}", value)
            self._tell_java(binding)
        for key, value in self.project.spark.conf.items():
            if key.startswith("spark.sql.") and self.spark.conf.isModifiable(key):
                conf.set(key, value)

    def _tell_java(self, binding: Binding) -> None:
        """Set what a client takes only from its process; by the gateway, as a command line can be read."""
        system: Any = self.spark.sparkContext._jvm
        for key, value in binding.java.items():
            former = system.java.lang.System.getProperty(key)
            if former is not None and former != value:
                raise KeysOfAnother(self.project.project)
            system.java.lang.System.setProperty(key, value)


def _start_context(project: Project, *, is_brief: bool = False) -> tuple[SparkContext, Path]:
    settings = project.spark
    check_cluster(settings.master)
    log = new_log(project.folder / ".esker" / "logs")
    java = find_java()
    jars = provide_jars(needed_jars(project), settings.conf, log)
    class_path = ":".join(str(jar) for jar in jars)
    java_options = (
        f"-Dlog4j2.configurationFile={log4j_settings(log).as_uri()} -Duser.timezone=UTC {COMPILE_ALL}"
    )
    own = settings.conf.get("spark.driver.extraJavaOptions", "")
    if own:
        java_options += f" {own}"
    if redact(java_options) != java_options:
        raise SecretOnCommandLine("spark.driver.extraJavaOptions")
    at_launch = {
        "spark.driver.memory": settings.driver_memory or default_driver_memory(),
        "spark.driver.extraClassPath": class_path,
        "spark.driver.extraJavaOptions": java_options,
        "spark.master": settings.master,
    }
    # Everything else goes through the gateway: a command line can be read by everybody.
    conf = SparkConf(loadDefaults=False)
    for key, value in (
        _defaults(project, log) | settings.conf | at_launch | _for_executors(project, jars)
    ).items():
        conf.set(key, value)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if settings.is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    further = ""
    if settings.is_local:
        further = use_or_make(archive_of(java, jars, own), own)
        if is_brief:
            further = f"{further} {brief_options(own)}".strip()
    gateway = _launched(at_launch, further, log, java)
    try:
        return _connect(conf, gateway, log), log
    except BaseException:
        _forget(gateway)
        raise


def _launched(at_launch: dict[str, str], further: str, log: Path, java: Java) -> Any:
    """Start Java, with further options if it takes them."""
    options = "spark.driver.extraJavaOptions"
    if further:
        with suppress(
            SparkFailed
        ):  # another maker's Java, or options of the machine that do not go with these
            # Before all others: of two that differ, Java takes the later one.
            return launch({**at_launch, options: f"{further} {at_launch[options]}"}, log, java)
    return launch(at_launch, log, java)


def _connect(conf: SparkConf, gateway: Any, log: Path) -> SparkContext:
    master = str(conf.get("spark.master"))
    with explained("Spark did not start", log, master=master):
        context = SparkContext(conf=conf, gateway=gateway)
        application = context.applicationId
    if master.startswith("spark://") and application.startswith("spark-application-"):
        # The master gave no id, so Spark made one up: it was not registered, and stops without an error.
        context.stop()
        raise ClusterUnreachable(master, "It did not register the application.", str(log))
    if threading.current_thread() is threading.main_thread():
        # PySpark's own handler talks to Java in the middle of another call, and both break.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return context


def _forget(gateway: Any) -> None:
    """End a Java whose Spark did not start, so that the next attempt in this process gets its own."""
    stop(gateway)
    SparkContext._gateway = None
    SparkContext._jvm = None


def _defaults(project: Project, log: Path) -> dict[str, str]:
    return startup_settings(project) | {
        "spark.ui.enabled": "false",
        "spark.esker.log": str(log),
        "spark.sql.warehouse.dir": str(project.folder / ".esker" / "spark"),
    }


def startup_settings(project: Project) -> dict[str, str]:
    """Return what Spark must be told when it starts, wherever that is."""
    return {
        "spark.app.name": f"esker {project.project}",
        "spark.ui.showConsoleProgress": "false",
        "spark.esker.jars": ",".join(needed_jars(project)),
        # A run makes some fifty classes. With a hundred, the default, the next run puts those away that
        # the one behind it needs again, and Java begins anew to compile them.
        "spark.sql.codegen.cache.maxEntries": "1000",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalogImplementation": "in-memory",
        # PySpark would tell Java for every column of a query which line of Esker's asked for it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.redaction.regex": "(?i)secret|password|token|credential|(access|account)[._-]?key",
        # What is kept on disk goes there through a stream that remembers a hundred objects, and each has
        # thousands of rows: a gigabyte of heap was not enough.
        "spark.serializer.objectStreamReset": "1",
        # Progress is read from the executors' heartbeats.
        "spark.executor.heartbeatInterval": "2s",
        **MEANING,
        "spark.network.timeout": "120s",
    }


def _for_executors(project: Project, jars: list[Path]) -> dict[str, str]:
    if project.spark.is_local:
        return {}
    conf = project.spark.conf
    listed = [*map(str, jars), *filter(None, [conf.get("spark.jars")])]
    options = [COMPILE_ALL, *filter(None, [conf.get("spark.executor.extraJavaOptions")])]
    return {"spark.jars": ",".join(listed), "spark.executor.extraJavaOptions": " ".join(options)}


def needed_jars(project: Project) -> list[str]:
    """Return the names of the jars that a project's catalogs and sources need, Iceberg's first."""
    bindings = (bind(catalog, project) for catalog in project.catalogs().values())
    of_catalogs = [jar for binding in bindings for jar in binding.jars]
    sources = [pipeline.source for pipeline in project.pipelines.values()]
    sources += [family.base.source for family in project.families.values()]
    of_sources = [jar for source in sources for jar in source.jars]
    return ["iceberg", *dict.fromkeys((*of_catalogs, *of_sources))]


def _check_jars(project: Project, loaded: list[str]) -> None:
    lacking = [name for name in needed_jars(project) if name not in loaded]
    if lacking:
        raise JarNotLoaded(project.project, lacking)


def _note(context: SparkContext, name: str) -> str:
    """Return what the project that started Spark has written down about it."""
    conf: Any = context._conf  # the copy that `getConf` makes is asked for setting by setting
    return str(conf.get(f"spark.esker.{name}", ""))
