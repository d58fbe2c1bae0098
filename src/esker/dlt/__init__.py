"""dlt pipelines that load into the tables of a project: `esker.dlt.destination(project)`."""

from esker.errors import MissingPackage, SparkNotInstalled

try:
    from esker.dlt.destination import destination
except ModuleNotFoundError as error:
    if error.name in ("pyspark", "py4j", "duckdb"):
        raise SparkNotInstalled("esker.dlt", "it loads with Spark") from None
    if error.name != "dlt":
        raise
    raise MissingPackage("dlt", "dlt", "dlt") from None

__all__ = ["destination"]
