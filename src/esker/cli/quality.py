"""`esker quality`: what the checks of a table found."""

from __future__ import annotations

from typing import Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, ProjectOption

AsOfOption = Annotated[
    str | None, typer.Option("--as-of", help="At this changeset or time (UTC unless it says). Default: now.")
]
BesideOption = Annotated[
    str | None, typer.Option("--beside", help="Compare with this earlier changeset or time.")
]


def quality(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Namespace and table.")],
    as_of: AsOfOption = None,
    beside: BesideOption = None,
    held: Annotated[bool, typer.Option("--held", help="Of batches that were held.")] = False,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what the checks of a table found: rows, rules, audits, at a point and beside another."""
    from esker.cli.opening import open_to_run
    from esker.cli.output import print_json, print_table, say

    found = open_to_run(project, env).quality(table, as_of, beside, held=held)
    if as_json:
        print_json({"table": table, "figures": [each.as_json() for each in found]})
        return
    if not found:
        say("nothing had been measured by then")
        return
    columns = [
        "metric",
        "kind",
        "value",
        *(["earlier", "change"] if beside else []),
        "passed",
        "at",
        "changeset",
    ]
    rows = []
    for each in found:
        compared = [_number(each.earlier), _number(each.change)] if beside else []
        passed = "" if each.passed is None else "yes" if each.passed else "no"
        at = f"{each.measured_at:%F %H:%M}"
        rows.append([each.metric, each.kind, _number(each.value), *compared, passed, at, each.changeset])
    print_table(columns, rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.6g}"
