"""What only Spark delivers, as far as the project file says it: known before any table is opened.

What tables hold beside that (deletes by value, other formats that another engine wrote) shows when they are
read.
"""

from __future__ import annotations

from esker.deliver.subscription import Subscription
from esker.project import Project
from esker.project.consumers import Consumer
from esker.project.warehouses import scheme_of
from esker.reading.settings import BY_JAVA, CHOOSE_LOCATIONS, WRITTEN_VERSION, Unsuited, settings_of


def why_for_messages(consumer: Consumer) -> str | None:
    """Return why only Spark makes a consumer's messages; None where each is made of one row."""
    if consumer.enrich:
        return "enrich: joins rows of other tables"
    if consumer.query is not None:
        return "its transform is a SELECT"
    return None


def why_for_changes(project: Project, own: Subscription) -> str | None:
    """Return why only Spark delivers the changes of a consumer; None where this process may do it alone."""
    if own.pipeline.mode == "delete_insert":
        return "rows of a key are deleted, of which others may be left"
    why = why_for_messages(own.consumer) or _why_not_opened(project, own)
    # The change log of a table has a format and a version of its own.
    return why if why is not None or own.pipeline.is_keyed else _why_not_read(own)


def why_for_rows(project: Project, own: Subscription) -> str | None:
    """Return why only Spark does the tasks of a consumer's reindex; None where this process may do them."""
    return why_for_messages(own.consumer) or _why_not_opened(project, own) or _why_not_read(own)


def _why_not_opened(project: Project, own: Subscription) -> str | None:
    catalog = project.catalogs()[own.table.catalog]
    if scheme_of(catalog.warehouse) in BY_JAVA:
        return "HDFS is reached with Java only"
    try:
        settings_of(project, catalog)
    except Unsuited as error:
        return str(error)
    is_tagged = not own.pipeline.is_keyed
    if is_tagged and own.pipeline.format_version > WRITTEN_VERSION and catalog.type not in CHOOSE_LOCATIONS:
        return f"PyIceberg writes no metadata of format version {own.pipeline.format_version}"
    return None


def _why_not_read(own: Subscription) -> str | None:
    return None if own.pipeline.format == "parquet" else f"files of {own.pipeline.format} are read by Spark"
