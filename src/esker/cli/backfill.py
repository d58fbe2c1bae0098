"""`esker backfill`: load a part of a source again, or compare all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, PipelineArgument, ProjectOption

FromOption = Annotated[
    str | None,
    typer.Option("--from", help="Beginning of the range: a date or time (UTC unless it says)."),
]
ToOption = Annotated[str | None, typer.Option("--to", help="End of the range; it is not a part of it.")]
IdsOption = Annotated[
    Path | None,
    typer.Option("--ids", help="File with ids, one a line: only these records, where a source knows ids."),
]
FullOption = Annotated[
    bool, typer.Option("--full", help="Compare all of the source; what it lacks is deleted.")
]
ReplaceEqualOption = Annotated[
    bool,
    typer.Option(
        "--replace-equal",
        help="Rows that are as new as the stored ones take their place, too: after a transform has changed.",
    ),
]


def backfill(
    pipeline: PipelineArgument,
    since: FromOption = None,
    until: ToOption = None,
    ids: IdsOption = None,
    full: FullOption = False,
    replace_equal: ReplaceEqualOption = False,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load a range of time again, some records, or all of a source. The position does not move."""
    from esker.cli.live import run_live
    from esker.cli.opening import open_project
    from esker.pipeline.ids import read_ids

    opened = open_project(project, env, [pipeline])
    wanted = read_ids(pipeline, ids) if ids is not None else ()
    run_live(
        lambda listen: opened.backfill(
            pipeline,
            since=since,
            until=until,
            ids=wanted,
            full=full,
            replace_equal=replace_equal,
            listen=listen,
        ),
        as_json=as_json,
    )
