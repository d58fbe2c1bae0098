"""`esker fsck`: look at tables for damage, and repair what can be repaired."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from esker.cli.options import EnvOption, JsonOption, ProjectOption

if TYPE_CHECKING:
    from esker.pipeline.api import OpenProject
    from esker.pipeline.fsck import Fsck, Repair
    from esker.recover.finding import Examined

_SHOWN = 20
_MOST_REPAIRS = 200
"""A repair may show the next thing to repair, but not without end."""


def fsck(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="TABLE", help="Tables. Default: those of all pipelines."),
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Open the files, too: slow.")] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what can be repaired. Asks first.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --repair: do not ask.")] = False,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at tables and their system tables for damage: metadata, manifests, files, ledger, change log.

    A table need not load for it. Exit status 1 when there is damage.
    """
    from esker.cli.opening import open_project
    from esker.cli.output import print_json

    opened = open_project(project, env)
    found = opened.fsck(tables or (), deep=deep)
    if not as_json:
        _print(found)
    done: list[dict[str, Any]] = []
    if repair:
        found = _repair(opened, found, tables or [], done, deep=deep, yes=yes, as_json=as_json)
    if as_json:
        print_json(found.as_json() | {"repairs": done})
    raise typer.Exit(0 if found.is_clean else 1)


def _repair(
    opened: OpenProject,
    found: Fsck,
    tables: list[str],
    done: list[dict[str, Any]],
    *,
    deep: bool,
    yes: bool,
    as_json: bool,
) -> Fsck:
    """Repair one thing after the other, and look again after each; return what is left."""
    from esker.cli.output import say

    for _ in range(_MOST_REPAIRS):
        plan = next(opened.plan_repairs(found), None)
        if plan is None:
            break
        if not as_json:
            _print_plan(plan)
        if not yes and not (not as_json and _agreed()):
            done.append(plan.as_json() | {"applied": False})
            if not as_json:
                say("nothing was changed; --yes does it without asking")
            break
        opened.repair(found, plan)
        done.append(plan.as_json() | {"applied": True})
        found = opened.fsck(tables, deep=deep)
        if not as_json:
            say("done")
            _print(found)
    return found


def _agreed() -> bool:
    """Ask whoever sits before it; where nobody does, the answer is no."""
    return sys.stdin.isatty() and sys.stdout.isatty() and typer.confirm("Do it?")


def _print(found: Fsck) -> None:
    from esker.cli.output import say

    if not found.tables:
        say("no table is there yet")
    for table in found.tables:
        say(_headline(table))
        for finding in table.findings[:_SHOWN]:
            say(f"  {'DAMAGE' if finding.is_damage else 'note'}: {finding.what}")
            if finding.file is not None:
                say(f"    file: {finding.file}")
            if finding.snapshot is not None:
                say(f"    since: snapshot {finding.snapshot}")
            say(f"    means: {finding.meaning}")
            for line in finding.remedy.splitlines():
                say(f"    → {line}")
        if len(table.findings) > _SHOWN:
            say(f"  and {len(table.findings) - _SHOWN} more; --json lists all")


def _headline(table: Examined) -> str:
    if table.document is None:
        return f"{table.table}: damaged"
    checked = table.checked
    looked_at = ", ".join(
        _count(number, name[:-1].replace("_", " ")) for name, number in vars(checked).items()
    )
    return f"{table.table}: {'damaged' if table.is_damaged else 'clean'} ({looked_at})"


def _print_plan(plan: Repair) -> None:
    from esker.cli.output import say

    told = plan.as_json()
    say(f"repair of {plan.table}: {told['repair']}")
    for key in ("from", "to"):
        if key in told:
            say(f"  {key}: {told[key]}")
    if "files" in told:
        say(f"  of: {_count(len(told['files']), 'file')}")
    for name in told.get("passed_over", ()):
        say(f"  passed over: {name}")
    if "commits_lost" in told:
        say(f"  lost: {_count(told['commits_lost'], 'commit')}")
        for snapshot in told["snapshots_lost"]:
            say(f"    snapshot {snapshot['snapshot_id']}: {_count(snapshot['added_rows'], 'row')} added")
        if told["changesets_lost"]:
            first, last = told["changesets_lost"]
            say(f"    changesets {first} to {last}" if first != last else f"    changeset {first}")
    for note in plan.notes:
        say(f"  note: {note}")


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
