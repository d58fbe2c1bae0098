"""`esker changes`: what changed in a table."""

from __future__ import annotations

from typing import Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, LimitOption, ProjectOption

SinceOption = Annotated[
    str | None,
    typer.Option("--since", help="Changes after this changeset, snapshot id or time (UTC unless it says)."),
]
UntilOption = Annotated[
    str | None, typer.Option("--until", help="Changes up to this changeset, snapshot id or time.")
]


def changes(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Namespace and table.")],
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 20,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what changed in a table, oldest first."""
    from esker.cli.opening import open_project, open_to_read
    from esker.cli.output import print_json, print_rows, say
    from esker.errors import NotWithoutSpark

    try:
        found = open_to_read(project, env).read_changes(table, since, until, limit=limit)
    except NotWithoutSpark:
        found = open_project(project, env).read_changes(table, since, until, limit=limit)
    if as_json:
        print_json(found.as_json())
        return
    if found.rows:
        print_rows([c for c in found.columns if c not in _FOR_PROGRAMS], found.rows)
    say(
        f"{found.count} changes in changesets {found.since + 1} to {found.until}"
        if found.count
        else "no changes"
    )


_FOR_PROGRAMS = (
    "_esker_hash_before",
    "_esker_hash_after",
    "_esker_run",
    "_esker_batch",
    "_esker_row",
    "_esker_order",
    "_esker_pipeline",
)
"""Columns that a person reads with --json."""
