"""Join a Spark that somebody else starts: spark-submit, Glue, EMR.

There Java runs before this program does, with the jars and settings of a command line or a job's definition;
`esker export` writes these. What the platform says counts, and what it does not say is set here.
"""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.conf import SparkConf

from esker.engine.gateway import PLATFORM_LOG, join
from esker.engine.pins import RUNTIMES, spark_minor
from esker.errors import OtherIceberg, OtherSpark, SparkFailed
from esker.project import Project

_EXTENSIONS = "spark.sql.extensions"
_ON_DRIVER = "spark.esker.on"
"""Setting of the platform's command line: `driver` keeps all work in the driver."""


def submitted_master() -> str:
    """Return where this program's Spark will run, as its command line says."""
    SparkContext._ensure_initialized(gateway=join())
    conf = SparkConf()
    if conf.get(_ON_DRIVER) == "driver":
        return "local[*]"
    return conf.get("spark.master") or "yarn"


def new_context(project: Project, settings: dict[str, str], firm: dict[str, str]) -> SparkContext:
    """Start Spark in the Java that this program was started from.

    `settings` are what the platform may leave unsaid, and `firm` what it has no say in. Raises OtherSpark or
    OtherIceberg when the platform has other versions than Esker works with, and SparkFailed.
    """
    SparkContext._ensure_initialized(gateway=join())
    jvm: Any = SparkContext._jvm
    _check_versions(jvm)
    conf = SparkConf()
    for key, value in (settings | project.spark.conf).items():
        conf.setIfMissing(key, value)
    wanted, there = settings[_EXTENSIONS], str(conf.get(_EXTENSIONS))
    if wanted not in there.split(","):
        conf.set(_EXTENSIONS, f"{there},{wanted}")
    for key, value in firm.items():
        conf.set(key, value)
    conf.set("spark.master", project.spark.master)
    try:
        return SparkContext(conf=conf)
    except Exception as error:
        raise SparkFailed("Spark did not start", str(error), PLATFORM_LOG) from error


def _check_versions(jvm: Any) -> None:
    minor = spark_minor()
    running = str(jvm.org.apache.spark.package.SPARK_VERSION())
    if not running.startswith(f"{minor}."):
        raise OtherSpark(running, minor)
    check_iceberg(jvm, RUNTIMES[minor].jars["iceberg"].rpartition(":")[2])


def check_iceberg(jvm: Any, needed: str) -> None:
    """Raise OtherIceberg unless Java has loaded this version: a platform's own would be in front of it."""
    try:
        found = str(jvm.org.apache.iceberg.IcebergBuild.version())
    except TypeError:  # Py4J takes a class that is not there for a package
        found = None
    if found != needed:
        raise OtherIceberg(found, needed)
