"""`esker backfill`: load a part of a source again, or compare all of it."""

from __future__ import annotations

from typing import Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, PipelineArgument, ProjectOption

FromOption = Annotated[
    str | None,
    typer.Option("--from", help="Beginning of the range: a date or time (UTC unless it says)."),
]
ToOption = Annotated[str | None, typer.Option("--to", help="End of the range; it is not a part of it.")]
FullOption = Annotated[
    bool, typer.Option("--full", help="Compare all of the source; what it lacks is deleted.")
]


def backfill(
    pipeline: PipelineArgument,
    since: FromOption = None,
    until: ToOption = None,
    full: FullOption = False,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load files of a range of time again, or all of a source. The position does not move."""
    from esker.cli.live import run_live
    from esker.cli.opening import open_project

    opened = open_project(project, env, [pipeline])
    run_live(
        lambda listen: opened.backfill(pipeline, since=since, until=until, full=full, listen=listen),
        as_json=as_json,
    )
