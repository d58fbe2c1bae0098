"""What others need to read a project's tables, or to run its pipelines. Each of them is one file here.

Values of secrets are never written: who reads or runs gets the name of the variable instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from esker.engine.pins import check_spark, spark_minor
from esker.errors import CannotExport
from esker.pipeline.export import athena, duckdb, pyiceberg, trino
from esker.pipeline.export.bundle import Bundle
from esker.pipeline.export.options import Options
from esker.pipeline.export.reader import Exported, Lake
from esker.project import Project

_READERS: dict[str, Callable[[Lake], Exported]] = {
    "athena": athena.export,
    "duckdb": duckdb.export,
    "pyiceberg": pyiceberg.export,
    "trino": trino.export,
}
READERS = tuple(_READERS)
"""Those that can be written for."""
PLATFORMS = ("spark-submit", "glue", "emr", "stepfunctions")
"""Where pipelines can run that Esker does not start."""


def export_reader(project: Project, reader: str, connection: str | None = None) -> Exported:
    """Return what a reader must be told of a catalog: the project's, or the one of a connection.

    Raises CannotExport for a reader that cannot use this catalog.
    """
    if connection is not None and not project.has_catalog(connection):
        raise CannotExport(reader, f'there is no catalog "{connection}" in the project')
    return _READERS[reader](Lake.of(project, connection, reader))


def export_platform(
    project: Project,
    platform: str,
    pipelines: Sequence[str] = (),
    *,
    account: str | None = None,
    home: str | None = None,
    application: str | None = None,
    options: Options | None = None,
) -> Bundle:
    """Return the files that run pipelines, or all, on a platform.

    For AWS: its `account`, the `home` of the job's files in S3, and for a state machine `options`. Raises
    UnknownPipeline, CannotExport for pipelines that cannot run there, and SparkUnsupported without PySpark,
    which knows jars and settings.
    """
    check_spark()
    # Readers are exported where there is no PySpark, too.
    from esker.pipeline.export import emr, glue, spark_submit, stepfunctions  # noqa: PLC0415
    from esker.pipeline.export.aws import Account  # noqa: PLC0415
    from esker.pipeline.export.platform import Job  # noqa: PLC0415

    if platform == "spark-submit":
        return spark_submit.export(Job.of(project, pipelines, platform, spark_minor()))
    where = Account.of(Job.of(project, pipelines, platform, glue.MINOR), account, home)
    match platform:
        case "glue":
            return glue.export(where)
        case "emr":
            return emr.export(where, application)
        case _:
            return stepfunctions.export(where, options or Options())


__all__ = ["PLATFORMS", "READERS", "Bundle", "Exported", "Options", "export_platform", "export_reader"]
