"""`esker export`: what others need to read the project's tables, or to run its pipelines."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, ProjectOption


class Target(StrEnum):
    """Who can be written for."""

    trino = "trino"
    duckdb = "duckdb"
    pyiceberg = "pyiceberg"
    athena = "athena"
    spark_submit = "spark-submit"
    glue = "glue"
    emr = "emr"
    stepfunctions = "stepfunctions"


class Runner(StrEnum):
    """Who runs the jobs of a state machine."""

    glue = "glue"
    emr = "emr"
    lambda_ = "lambda"
    ecs = "ecs"


class Tasks(StrEnum):
    """Who does small work for a state machine."""

    lambda_ = "lambda"
    ecs = "ecs"


def export(
    target: Annotated[
        Target,
        typer.Argument(
            metavar="TARGET",
            help="A reader: trino, duckdb, pyiceberg, athena. "
            "A platform: spark-submit, glue, emr, stepfunctions.",
        ),
    ],
    pipelines: Annotated[
        list[str] | None,
        typer.Argument(metavar="PIPELINE", help="Pipelines that a platform is to run. Default: all."),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option("--catalog", "-c", help="For readers: a connection. Default: the project's catalog."),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write files into this folder. Default: print them.")
    ] = None,
    account: Annotated[
        str | None, typer.Option("--account", help="For AWS: the account. Default: that of the Glue catalog.")
    ] = None,
    home: Annotated[
        str | None,
        typer.Option(
            "--home", help="For AWS: where the job's files lie. Default: esker/PROJECT in the tables' bucket."
        ),
    ] = None,
    runner: Annotated[
        Runner,
        typer.Option(
            "--runner", help="For stepfunctions: who runs pipelines: glue, emr; small ones lambda or ecs."
        ),
    ] = Runner.glue,
    tasks: Annotated[
        Tasks,
        typer.Option(
            "--tasks", help="For stepfunctions: who delivers and does tasks of a reindex, lambda or ecs."
        ),
    ] = Tasks.lambda_,
    subnets: Annotated[
        list[str] | None,
        typer.Option("--subnet", help="For ecs: a subnet in which its tasks run. May be repeated."),
    ] = None,
    cluster: Annotated[str, typer.Option("--cluster", help="For ecs: the cluster.")] = "default",
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            help="For stepfunctions: when it starts, as EventBridge writes it, rate(1 hour). Default: the "
            "shortest every: of the pipelines.",
        ),
    ] = None,
    application: Annotated[
        str | None, typer.Option("--application", help="For emr: the id of an application of EMR Serverless.")
    ] = None,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write what others need to read the tables, or to run pipelines. Secrets stand there as variables."""
    from esker.cli.output import print_json, say, tell
    from esker.pipeline.export import PLATFORMS, Options, export_platform, export_reader
    from esker.project import load_project

    declared = load_project(project or Path(), env)
    if target.value in PLATFORMS:
        bundle = export_platform(
            declared,
            target.value,
            pipelines or (),
            account=account,
            home=home,
            application=application,
            options=Options(
                runner=runner.value,
                application=application,
                tasks=tasks.value,
                subnets=tuple(subnets or ()),
                cluster=cluster,
                schedule=schedule,
            ),
        )
        files, variables, notes = bundle.files, bundle.variables, bundle.notes
    else:
        found = export_reader(declared, target.value, catalog)
        files, variables, notes = {found.name: found.text}, found.variables, ()
    written = [] if to is None else [_write(to / name, content) for name, content in files.items()]
    if as_json:
        texts = {name: content for name, content in files.items() if isinstance(content, str)}
        where = [str(path) for path in written]
        print_json({"files": texts, "variables": variables, "notes": notes, "written": where})
    elif to is not None:
        for path in written:
            say(f"wrote {path}")
    else:
        for name, content in files.items():
            if len(files) > 1:
                say(f"# {name}")
            say(content.rstrip("\n") if isinstance(content, str) else f"({len(content)} bytes)")
    for note in notes:
        tell(note)
    if variables:
        tell(f"Set where it is used: {', '.join(variables)}")


def _write(target: Path, content: str | bytes) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.encode() if isinstance(content, str) else content)
    if target.suffix == ".sh":
        target.chmod(0o755)
    return target
