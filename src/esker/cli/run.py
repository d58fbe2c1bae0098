"""`esker run`: load what is new."""

from __future__ import annotations

from typing import Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, PipelinesArgument, ProjectOption


def run(
    pipelines: PipelinesArgument = None,
    due: Annotated[bool, typer.Option("--due", help="Only those that every: or cron: says are due.")] = False,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load what is new in the sources into the tables."""
    from esker.cli.live import live
    from esker.cli.opening import open_to_run
    from esker.cli.output import end_with

    opened = open_to_run(project, env, pipelines or ())
    opened.only_runs = pipelines or ()
    with live() as listen:
        report = opened.run_all(pipelines or (), only_due=due, listen=listen)
    end_with(report, as_json=as_json)
