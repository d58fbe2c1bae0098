"""`esker deliver`: tell consumers what changed."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, ProjectOption

if TYPE_CHECKING:
    from esker.pipeline.deliver import DeliveryReport
    from esker.pipeline.forget import ForgottenConsumer

ConsumersArgument = Annotated[
    list[str] | None, typer.Argument(metavar="CONSUMER", help="Consumers. Default: all.")
]


def deliver(
    consumers: ConsumersArgument = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until it is interrupted; print what was delivered.")
    ] = False,
    period: Annotated[
        float, typer.Option("--period", min=0.1, help="Seconds between two looks, with --follow.")
    ] = 5.0,
    retry_dead: Annotated[
        bool, typer.Option("--retry-dead", help="Send dead letters first, each as its row is by now.")
    ] = False,
    forget: Annotated[
        str | None,
        typer.Option(
            "--forget",
            metavar="NAME",
            help="Send nothing; let go of a consumer that is no longer declared: its offset, and its tags.",
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", help="With --forget: look also on a table that no pipeline loads any more."),
    ] = None,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send consumers what has changed since they were told last."""
    from esker.cli.opening import open_project, open_to_deliver

    if forget is not None and (consumers or follow or retry_dead):
        raise typer.BadParameter("with --forget nothing is delivered: write only --table with it")
    if table and forget is None:
        raise typer.BadParameter("--table means nothing without --forget")
    if forget is not None:
        forgotten = open_project(project, env).forget_consumer(forget, table or ())
        _print_forgotten(forgotten, as_json=as_json)
        return
    opened = open_to_deliver(project, env)
    names = consumers or list(opened.project.consumers)
    for name in names:
        opened.project.consumer(name)
    ends = threading.Event()
    if follow:

        def stop(number: int, frame: FrameType | None) -> None:
            ends.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
    while True:
        report = opened.deliver_all(names, retry_dead=retry_dead, ends=ends)
        if not follow:
            _print(report, as_json=as_json)
            raise typer.Exit(report.exit_status)
        _print_news(report, as_json=as_json)
        retry_dead = False  # what failed again is not sent every few seconds
        if ends.wait(period):
            return


def _print(report: DeliveryReport, *, as_json: bool) -> None:
    from esker.cli.output import print_error, print_json, print_table, say

    if as_json:
        print_json(report.as_json())
        return
    if not report.consumers:
        say("the project declares no consumers")
        return
    print_table(
        ("consumer", "status", "table", "changesets", "sent", "deleted", "dead", "seconds"),
        [
            (
                result.consumer,
                result.status,
                result.table,
                _range(result.since, result.until),
                result.rows.sent,
                result.rows.deleted,
                result.dead,
                round(result.seconds, 1),
            )
            for result in report.consumers
        ],
    )
    for result in report.consumers:
        if result.rows.dead:
            say(f"{result.consumer}: {result.rows.dead} rows failed, and are dead letters now")
        for note in result.notes:
            say(f"{result.consumer}: {note}")
        if result.error is not None:
            print_error(result.error, as_json=False)


def _print_forgotten(forgotten: ForgottenConsumer, *, as_json: bool) -> None:
    from esker.cli.output import print_json, say

    if as_json:
        print_json(forgotten.as_json())
        return
    name = forgotten.consumer
    if not forgotten.had_offset and not forgotten.tables:
        say(f"{name}: nothing was kept for it")
        return
    say(f"{name}: forgotten")
    for each in forgotten.tables:
        say(f"{name}: table {each} keeps no snapshots for it any more")


def _print_news(report: DeliveryReport, *, as_json: bool) -> None:
    """Print what was delivered, or went wrong, one line each."""
    import json

    from esker.cli.output import print_error, say
    from esker.project.secrets import masked

    for result in report.consumers:
        if as_json and (result.changesets or result.error is not None):
            say(json.dumps(masked(result.as_json()), ensure_ascii=False))
        elif result.error is not None:
            print_error(result.error, as_json=False)
        elif result.changesets:
            dead = f", {result.rows.dead} dead" if result.rows.dead else ""
            told = f"{result.rows.sent} sent, {result.rows.deleted} deleted{dead}"
            say(f"{result.consumer}: changesets {_range(result.since, result.until)}, {told}")


def _range(since: int | None, until: int | None) -> str | None:
    if since is None or until is None:
        return None if until is None else f"up to {until}"
    return "—" if since == until else f"{since + 1} to {until}"
