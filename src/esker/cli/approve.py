"""`esker approve`: let a held batch happen."""

from __future__ import annotations

import typer

from esker.cli.options import EnvOption, JsonOption, PipelineArgument, ProjectOption


def approve(
    pipeline: PipelineArgument,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a held batch happen."""
    from esker.cli.live import live
    from esker.cli.opening import open_project
    from esker.cli.output import print_json, print_report
    from esker.pipeline.result import RunReport

    opened = open_project(project, env, [pipeline])
    with live() as listen:
        report = RunReport([opened.approve(pipeline, listen)])
    if as_json:
        print_json(report.as_json())
    else:
        print_report(report)
    raise typer.Exit(report.exit_status)
