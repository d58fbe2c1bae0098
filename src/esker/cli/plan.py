"""`esker plan`: what would a run do?"""

from __future__ import annotations

from typing import Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, PipelinesArgument, ProjectOption


def plan(
    pipelines: PipelinesArgument = None,
    apply: Annotated[bool, typer.Option("--apply", help="Make the table changes; load nothing.")] = False,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a run would create, alter, read and write. Nothing is changed without --apply."""
    from esker.cli.opening import open_project
    from esker.cli.output import print_json, say, size

    opened = open_project(project, env, pipelines or ())
    plans = opened.plan(pipelines or ())
    if apply:
        opened.apply(plans)
    if as_json:
        nothing = all(plan.is_empty for plan in plans)
        print_json(
            {
                "status": "succeeded",
                "applied": apply,
                "nothing_to_do": nothing,
                "pipelines": [plan.as_json() for plan in plans],
            }
        )
        return
    for found in plans:
        say(f"{found.pipeline} → {found.table} ({found.mode})")
        for change in found.changes:
            say(f"  {'applied' if apply else 'change'}: {change}")
            if ddl := change.as_json().get("ddl"):
                say("    " + ddl.replace("\n", "\n    "))
            if order := change.as_json().get("sort_by"):
                say(f"    sorted by {', '.join(order)}")
        for piece in found.slices:
            say(f"  read: {piece.summary}, {size(piece.bytes)}; write: one batch")
        for note in found.notes:
            say(f"  note: {note}")
        if found.is_empty:
            say("  nothing to do")
