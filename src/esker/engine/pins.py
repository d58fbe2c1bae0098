"""The one place for versions: which PySpark, which Iceberg, which Java.

`jars.lock.json` beside this file holds the exact jars with their checksums; `make lock` writes it.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from esker.errors import SparkUnsupported

PYSPARK = "4.1.4"
ICEBERG = "1.12.0"
JAVA_VERSIONS = (17, 21)

_RUNTIMES = {"4.1": f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG}"}
"""Iceberg's runtime by PySpark's minor version. Never cross minors: classes then break while they load."""

JARS = {
    "iceberg": _RUNTIMES["4.1"],
    "sqlite": "org.xerial:sqlite-jdbc:3.53.4.0",
    "aws": f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}",
    # Clients of other clouds, and nothing of Iceberg's own: not every registry has those of each version, and
    # Iceberg's runtime works with earlier ones.
    "gcp": "org.apache.iceberg:iceberg-gcp-bundle:1.11.0",
    "azure": "org.apache.iceberg:iceberg-azure-bundle:1.10.0",
    "postgresql": "org.postgresql:postgresql:42.7.14",
    "mariadb": "org.mariadb.jdbc:mariadb-java-client:3.5.6",
    # Of the same minor version as Spark; it is released with Spark, and not every registry has each patch.
    "avro": "org.apache.spark:spark-avro_2.13:4.1.1",
}
"""Every jar that some connection needs, by the name that connections use."""


def check_spark() -> str:
    """Return the installed PySpark's version, or raise SparkUnsupported."""
    try:
        installed = version("pyspark")
    except PackageNotFoundError:
        raise SparkUnsupported(None, _supported(), PYSPARK) from None
    if ".".join(installed.split(".")[:2]) not in _RUNTIMES:
        raise SparkUnsupported(installed, _supported(), PYSPARK)
    return installed


def _supported() -> str:
    return ", ".join(f"{minor}.x" for minor in _RUNTIMES)
