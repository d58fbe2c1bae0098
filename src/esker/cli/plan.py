"""`esker plan`: what would a run do?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, PipelinesArgument, ProjectOption

if TYPE_CHECKING:
    from esker.pipeline.planned import PipelinePlan


def plan(
    pipelines: PipelinesArgument = None,
    apply: Annotated[bool, typer.Option("--apply", help="Make the table changes; load nothing.")] = False,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a run would create, alter, read and write, and how contract, table and source differ.

    Nothing is changed without --apply.
    """
    from esker.cli.opening import open_project, open_to_run
    from esker.cli.output import print_error, print_json, tell
    from esker.errors import common_status

    if apply:
        whole = open_project(project, env, pipelines or ())
        plans = whole.plan(pipelines or ())
    else:
        opened = open_to_run(project, env, pipelines or ())
        opened.only_runs = pipelines or ()
        plans = opened.plan(pipelines or ())
    errors = {plan.pipeline: plan.error for plan in plans if plan.error is not None}
    applies = apply and not errors
    if applies:
        whole.apply(plans)
    if as_json:
        document = {
            "status": "failed" if errors else "succeeded",
            "applied": applies,
            "nothing_to_do": all(plan.is_empty for plan in plans),
            "pipelines": [plan.as_json() for plan in plans],
        }
        first = next(iter(errors.values()), None)
        print_json(document | ({"error": first.as_json()} if first is not None else {}))
    else:
        for found in plans:
            _print(found, is_applied=applies)
        for name, error in errors.items():
            print_error(error, as_json=False, pipeline=name)
        if apply and errors:
            tell("nothing was applied: first mend what keeps a run from beginning")
    raise typer.Exit(common_status(errors.values()))


def _print(plan: PipelinePlan, *, is_applied: bool) -> None:
    from esker.cli.output import say, size

    say(f"{plan.pipeline} → {plan.table} ({plan.mode})")
    for change in plan.changes:
        say(f"  {'applied' if is_applied else 'change'}: {change}")
        if ddl := change.as_json().get("ddl"):
            say("    " + ddl.replace("\n", "\n    "))
        if order := change.as_json().get("sort_by"):
            say(f"    sorted by {', '.join(order)}")
    for piece in plan.slices if plan.error is None else ():
        say(f"  read: {piece.summary}, {size(piece.bytes)}; write: one batch")
    for difference in plan.differences:
        say(f"  {difference.between}: {difference}")
    for failure in plan.failures:
        say(f"  missing: {failure.message}: {failure.reason}")
    for note in plan.notes:
        say(f"  note: {note}")
    if plan.is_empty:
        say("  nothing to do")
