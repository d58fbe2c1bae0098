"""`esker run`: load what is new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, PipelinesArgument, ProjectOption

if TYPE_CHECKING:
    from esker.pipeline.result import RunReport


def run(
    pipelines: PipelinesArgument = None,
    due: Annotated[bool, typer.Option("--due", help="Only those that every: or cron: says are due.")] = False,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load what is new in the sources into the tables."""
    from esker.cli.live import live
    from esker.cli.opening import open_project
    from esker.cli.output import print_json

    opened = open_project(project, env, pipelines or ())
    with live() as listen:
        report = opened.run_all(pipelines or (), only_due=due, listen=listen)
    if as_json:
        print_json(report.as_json())
    else:
        _print(report)
    raise typer.Exit(report.exit_status)


def _print(report: RunReport) -> None:
    from esker.cli.output import print_error, print_table, say, size

    if not report.pipelines:
        say("nothing is due")
        return
    print_table(
        ("pipeline", "status", "table", "rows", "batches", "changeset", "written", "seconds"),
        [
            (
                result.pipeline,
                result.status,
                result.table,
                result.rows.inserted,
                result.batches,
                result.changeset,
                size(result.bytes_written),
                round(result.seconds, 1),
            )
            for result in report.pipelines
        ],
    )
    for result in report.pipelines:
        for note in result.notes:
            say(f"{result.pipeline}: {note}")
        if result.error is not None:
            print_error(result.error, as_json=False)
