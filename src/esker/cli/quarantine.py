"""`esker quarantine`: rows that could not be loaded, and what becomes of them."""

from __future__ import annotations

from typing import Annotated

import typer

from esker.cli.options import (
    EnvOption,
    JsonOption,
    LimitOption,
    PipelineArgument,
    PipelinesArgument,
    ProjectOption,
)

app = typer.Typer(no_args_is_help=True, help="Rows that could not be loaded: list, show, replay, discard.")

RuleOption = Annotated[str | None, typer.Option("--rule", help="Only rows that break this rule.")]
ChangesetOption = Annotated[
    int | None, typer.Option("--changeset", help="Only rows that came with this changeset.")
]
IdsOption = Annotated[
    list[str] | None, typer.Option("--id", help="Only this row, as `show` calls it; may be repeated.")
]


@app.command("list")
def list_(
    pipelines: PipelinesArgument = None,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what waits in quarantine, by table and broken rules."""
    from esker.cli.opening import open_to_run
    from esker.cli.output import print_json, print_table, say

    found = open_to_run(project, env, pipelines or ()).quarantined(pipelines or ())
    if as_json:
        print_json({"quarantined": [each.as_json() for each in found]})
        return
    if not found:
        say("nothing waits in quarantine")
        return
    rows = [
        (
            each.table,
            each.pipeline,
            ", ".join(each.rules),
            each.rows,
            f"{each.last_at:%F %H:%M}",
            each.example,
        )
        for each in found
    ]
    print_table(["table", "pipeline", "rules", "rows", "last", "for example"], rows)


@app.command()
def show(
    pipeline: PipelineArgument,
    rule: RuleOption = None,
    changeset: ChangesetOption = None,
    ids: IdsOption = None,
    limit: LimitOption = 20,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print rows in quarantine: what is wrong with each, and the row as the source sent it."""
    from esker.cli.opening import open_project
    from esker.cli.output import print_json, print_rows, say
    from esker.pipeline.quarantine import Choice

    opened = open_project(project, env, [pipeline])
    rows = opened.show_quarantined(pipeline, Choice(rule, changeset, tuple(ids or ())), limit=limit)
    if as_json:
        print_json({"pipeline": pipeline, "rows": rows})
    elif rows:
        print_rows(["id", "rules", "reason", "payload", "origin"], rows)
    else:
        say("no such row waits in quarantine")


@app.command()
def replay(
    pipeline: PipelineArgument,
    rule: RuleOption = None,
    changeset: ChangesetOption = None,
    ids: IdsOption = None,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check rows in quarantine with today's contract, and load those that are good now."""
    from esker.cli.live import run_live
    from esker.cli.opening import open_project
    from esker.pipeline.quarantine import Choice

    opened = open_project(project, env, [pipeline])
    chosen = Choice(rule, changeset, tuple(ids or ()))
    run_live(lambda listen: opened.replay(pipeline, chosen, listen), as_json=as_json)


@app.command()
def discard(
    pipeline: PipelineArgument,
    rule: RuleOption = None,
    changeset: ChangesetOption = None,
    ids: IdsOption = None,
    everything: Annotated[bool, typer.Option("--all", help="All rows of the pipeline that wait.")] = False,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Leave rows in quarantine for good. They stay there, and no longer wait."""
    from esker.cli.opening import open_project
    from esker.cli.output import print_json, say
    from esker.pipeline.quarantine import Choice

    chosen = Choice(rule, changeset, tuple(ids or ()))
    if chosen == Choice() and not everything:
        raise typer.BadParameter("name a --rule, a --changeset or an --id; --all means every row that waits")
    count = open_project(project, env, [pipeline]).discard(pipeline, chosen)
    if as_json:
        print_json({"status": "succeeded", "pipeline": pipeline, "discarded": count})
        return
    say(f"{pipeline}: {count} rows are left for good")
