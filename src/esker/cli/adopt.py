"""`esker adopt`: take an existing table into a pipeline."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, ProjectOption

if TYPE_CHECKING:
    from esker.pipeline.adoption import Adoption


def adopt(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table that a pipeline names.")],
    files: Annotated[
        str | None,
        typer.Option("--files", help="Parquet files to take in as they lie: 'folder/*.parquet'."),
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it, without asking.")] = False,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take an existing Iceberg table, or Parquet files, into a pipeline. No data file is rewritten."""
    from esker.cli.opening import open_project
    from esker.cli.output import print_json, say

    opened = open_project(project, env)
    found = opened.plan_adoption(table, files=files)
    if not as_json:
        _print(found)
        if not apply and not found.is_done and sys.stdin.isatty() and sys.stdout.isatty():
            apply = typer.confirm("Adopt it?")
    if apply and not found.is_done:
        found = opened.apply_adoption(found)
    if as_json:
        print_json({"status": "succeeded", "applied": found.snapshot_id is not None, **found.as_json()})
    elif found.is_done:
        say("nothing to do")
    elif found.snapshot_id is None:
        say("nothing was changed; --apply does it")
    else:
        say(f"adopted, snapshot {found.snapshot_id}")


def _print(found: Adoption) -> None:
    from esker.cli.output import say

    say(f"{found.table} → pipeline {found.pipeline} ({found.mode}), {found.census.rows:,} rows")
    for change in found.changes:
        say(f"  change: {change}")
    if found.files:
        say(f"  take in: {len(found.files)} files")
    for note in found.notes:
        say(f"  note: {note}")
