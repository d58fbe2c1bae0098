"""Iceberg's door for files that are written and not committed, which its compaction uses.

It is another one in the runtime for Spark 4.1 than in those for earlier versions.
"""

from __future__ import annotations

from esker.engine.pins import is_spark

_IS_OWN_TABLE = is_spark("4.1")

_NAME = "SparkRewriteTableCatalog" if _IS_OWN_TABLE else "SparkCachedTableCatalog"
STAGING_CLASS = f"org.apache.iceberg.spark.{_NAME}"
"""The catalog behind the door."""


def staging_name(group: str) -> str:
    """Return what a table that was put there is called."""
    return group if _IS_OWN_TABLE else f"{group}#rewrite"


def staging_options(group: str) -> dict[str, str]:
    """Return how a write says that it is for the table that was put there."""
    return {} if _IS_OWN_TABLE else {"rewritten-file-scan-task-set-id": group}
