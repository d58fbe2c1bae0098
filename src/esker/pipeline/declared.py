"""What of a project decides how a pipeline runs, as a digest: equal for equal declarations only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from esker.project import Project
from esker.project.types import Column, ddl


def digest_of(project: Project, name: str, columns: Sequence[Column]) -> str:
    """Return a text that is another one when a pipeline, its contract, its surroundings or its table's
    columns are.

    Other versions of Esker and of Spark may see the same declaration in another way, so they are part of it.
    """
    catalogs = {key: catalog.model_dump(mode="json") for key, catalog in project.catalogs().items()}
    parts = {
        "esker": _version("esker"),
        "spark": _version("pyspark"),
        "project": project.project,
        "system_namespace": project.system_namespace,
        "store": project.store.model_dump(mode="json") if project.store is not None else None,
        "catalogs": catalogs,
        "settings": project.spark.model_dump(mode="json"),
        "pipeline": project.pipeline(name).model_dump(mode="json"),
        # Its parts are plain values, which show all that they hold.
        "contract": repr(project.contract(name)),
        "columns": [(column.name, ddl(column.type)) for column in columns],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
