"""The one place for versions: which PySpark, which Iceberg, which Java.

`jars.lock.json` beside this file holds the exact jars with their checksums; `make lock` writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from esker.errors import LoadingNotInstalled, SparkUnsupported

_BESIDE_SPARK = "duckdb"
"""What the extra `spark` brings beside PySpark."""
PYSPARK = "4.1.4"
ICEBERG = "1.12.0"


@dataclass(frozen=True)
class Runtime:
    """What belongs to one minor version of Spark, and breaks with every other."""

    java: tuple[int, ...]
    jars: dict[str, str]
    """Jars that are built for it, by the name that connections use."""


RUNTIMES = {
    # Of Scala 2.12, as PySpark 3.5 from PyPI, Glue 5 and EMR 7 are.
    "3.5": Runtime(
        (17,),
        {
            "iceberg": f"org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:{ICEBERG}",
            "avro": "org.apache.spark:spark-avro_2.12:3.5.7",
        },
    ),
    "4.0": Runtime(
        (17, 21),
        {
            # Not every registry has the one of 1.12 for this minor version.
            "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
            "avro": "org.apache.spark:spark-avro_2.13:4.0.2",
        },
    ),
    "4.1": Runtime(
        (17, 21),
        {
            "iceberg": f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG}",
            # It is released with Spark, and not every registry has each patch.
            "avro": "org.apache.spark:spark-avro_2.13:4.1.1",
        },
    ),
}
"""By Spark's minor version. Never cross minors: classes then break while they load."""

SHARED_JARS = {
    "sqlite": "org.xerial:sqlite-jdbc:3.53.4.0",
    "aws": f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}",
    # Clients of other clouds, and nothing of Iceberg's own: not every registry has those of each version, and
    # Iceberg's runtime works with earlier ones.
    "gcp": "org.apache.iceberg:iceberg-gcp-bundle:1.11.0",
    "azure": "org.apache.iceberg:iceberg-azure-bundle:1.10.0",
    "postgresql": "org.postgresql:postgresql:42.7.14",
    "mariadb": "org.mariadb.jdbc:mariadb-java-client:3.5.6",
}
"""Jars that every Spark can load, by the name that connections use."""


def check_spark() -> str:
    """Return the installed PySpark's version, or raise SparkUnsupported or LoadingNotInstalled."""
    installed = _installed()
    if installed is None or minor_of(installed) not in RUNTIMES:
        raise SparkUnsupported(installed, supported(), PYSPARK)
    # Platforms have PySpark of their own, and not what the extra brings beside it.
    if find_spec(_BESIDE_SPARK) is None:
        raise LoadingNotInstalled(_BESIDE_SPARK)
    return installed


def has_spark() -> bool:
    """Tell whether PySpark can be imported here, and what the extra brings beside it. Imports nothing."""
    return find_spec("pyspark") is not None and find_spec(_BESIDE_SPARK) is not None


def spark_minor() -> str:
    """Return the minor version of the installed PySpark: "4.1". Raises SparkUnsupported."""
    return minor_of(check_spark())


def is_spark(minor: str) -> bool:
    """Tell whether the installed PySpark is of a minor version. Asks nothing of one that is not supported."""
    installed = _installed()
    return installed is not None and minor_of(installed) == minor


def minor_of(installed: str) -> str:
    """Return "3.5" for 3.5.4, and for a vendor's 3.5.4-amzn-0."""
    return ".".join(installed.split(".")[:2])


def supported() -> str:
    """Return the versions of PySpark for which there is a runtime, in words."""
    return ", ".join(f"{minor}.x" for minor in RUNTIMES)


def jars_for(minor: str) -> dict[str, str]:
    """Return every jar that some connection needs on a Spark, by the name that connections use."""
    return RUNTIMES[minor].jars | SHARED_JARS


def _installed() -> str | None:
    if find_spec("pyspark") is None:
        return None
    try:
        return version("pyspark")
    except PackageNotFoundError:
        pass
    try:
        # Platforms put PySpark on Python's path without installing it.
        from pyspark.version import __version__  # noqa: PLC0415
    except ImportError:
        return None
    return str(__version__)
