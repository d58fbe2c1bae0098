"""`esker reindex`: send a consumer all rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, ProjectOption

if TYPE_CHECKING:
    from esker.pipeline.deliver import DeliveryResult
    from esker.pipeline.reindex import GivenUpReindex, ReindexTasks

_UNUSED = {
    "--list-tasks": ("--parallel", "--rate"),
    "--task": ("--into", "--parallel", "--anew"),
    "--ids": ("--into", "--parallel", "--rate", "--anew"),
    "--give-up": ("--into", "--parallel", "--rate", "--anew"),
}


def reindex(
    consumer: Annotated[str, typer.Argument(metavar="CONSUMER", help="A consumer of the project.")],
    into: Annotated[
        str | None, typer.Option("--into", help="Name of the new index. Default: consumer and time.")
    ] = None,
    parallel: Annotated[int | None, typer.Option("--parallel", min=1, help="Tasks at a time.")] = None,
    rate: Annotated[
        int | None,
        typer.Option(
            "--rate", min=1, help="Most rows per second, of all tasks together; of one with --task."
        ),
    ] = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Begin anew, also where one has begun and is not done.")
    ] = False,
    tasks: Annotated[
        bool, typer.Option("--list-tasks", help="Begin, and print the tasks; others do them with --task.")
    ] = False,
    task: Annotated[int | None, typer.Option("--task", min=0, help="Do this task and no other.")] = None,
    ids: Annotated[
        Path | None,
        typer.Option("--ids", help="Send only rows with these ids, one a line, to where deliveries go."),
    ] = None,
    given_up: Annotated[
        bool, typer.Option("--give-up", help="End one that has begun and is not done; keep nothing for it.")
    ] = False,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a consumer all rows of its table, then let deliveries go on behind them.

    A search index is filled anew, and the alias switched when it is whole. A reindex that was stopped goes
    on with what is left; one whose tasks were done elsewhere is ended.
    """
    from esker.cli.opening import open_project, open_to_deliver

    ways = {
        "--list-tasks": tasks,
        "--task": task is not None,
        "--ids": ids is not None,
        "--give-up": given_up,
    }
    way, *others = [name for name, is_asked in ways.items() if is_asked] or [""]
    if others:
        raise typer.BadParameter("write one of --list-tasks, --task, --ids and --give-up")
    asked = {"--into": into, "--parallel": parallel, "--rate": rate, "--anew": anew or None}
    for name in _UNUSED.get(way, ()):
        if asked[name] is not None:
            raise typer.BadParameter(f"{name} means nothing with {way}")
    if task is not None:
        result = open_to_deliver(project, env).run_reindex_task(consumer, task, rate=rate)
        _print(result, as_json=as_json)
        raise typer.Exit(result.error.exit_status if result.error is not None else 0)
    opened = open_project(project, env)
    opened.project.consumer(consumer)
    if tasks:
        _print_tasks(opened.reindex_plan(consumer, into=into, anew=anew), as_json=as_json)
        return
    if given_up:
        _print_end(opened.give_up_reindex(consumer), as_json=as_json)
        return
    if ids is not None:
        result = opened.reindex(consumer, ids=ids)
    else:
        result = opened.reindex(consumer, into=into, parallel=parallel, rate=rate, anew=anew)
    _print(result, as_json=as_json)
    raise typer.Exit(result.error.exit_status if result.error is not None else 0)


def _print_tasks(found: ReindexTasks, *, as_json: bool) -> None:
    from esker.cli.output import print_json, print_table, say

    if as_json:
        print_json(found.as_json())
        return
    lines = [(t.number, len(t.files), t.rows, t.bytes, t.is_done) for t in found.tasks]
    print_table(("task", "files", "rows", "bytes", "done"), lines)
    say(f"then: esker reindex {found.consumer}")


def _print_end(ended: GivenUpReindex, *, as_json: bool) -> None:
    from esker.cli.output import print_json, say

    if as_json:
        print_json(ended.as_json())
        return
    say(f"{ended.consumer}: the reindex of snapshot {ended.snapshot_id} was given up")
    if ended.into is not None:
        say(f"{ended.consumer}: index {ended.into} is left as it is; nobody needs it any more")


def _print(result: DeliveryResult, *, as_json: bool) -> None:
    from esker.cli.output import print_error, print_json, say

    if as_json:
        print_json(result.as_json())
        return
    rows, name = result.rows, result.consumer
    dead = rows.dead + rows.known
    say(f"{name}: {result.status}: {rows.sent} sent, {rows.unwanted} not wanted, {dead} dead")
    for note in result.notes:
        say(f"{name}: {note}")
    if result.error is not None:
        print_error(result.error, as_json=False)
