"""`esker status`: how the pipelines are doing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from esker.cli.options import EnvOption, JsonOption, ProjectOption

if TYPE_CHECKING:
    from esker.ledger.runs import RunRecord


def status(project: ProjectOption = None, env: EnvOption = None, as_json: JsonOption = False) -> None:
    """Show each pipeline's last run, from the run history. Needs no Spark."""
    from esker.cli.output import print_json, print_table, say
    from esker.ledger.state import State
    from esker.pipeline.status import project_status
    from esker.project import load_project

    found = load_project(project or Path(), env)
    with closing(State.open(found)) as state:
        lines = project_status(found, state, state.now())
    if as_json:
        print_json({"status": "succeeded", "pipelines": [line.as_json() for line in lines]})
        return
    print_table(
        ("pipeline", "table", "last run (UTC)", "last success (UTC)", "due"),
        [
            (
                line.pipeline,
                line.table,
                f"{line.status} {_moment(line.last_run)}" if line.last_run else line.status,
                _success(line.last_success) if line.last_success else None,
                "yes" if line.is_due else "",
            )
            for line in lines
        ],
    )
    for line in lines:
        if line.hold is not None:
            say(f"{line.pipeline}: held: {line.hold.message}; esker approve or esker reject {line.pipeline}")
        elif line.is_gone:
            say(f"{line.pipeline}: its table is no longer in the database; {line.table} stays as it is")
        elif line.last_run and line.last_run.error:
            error = line.last_run.error
            say(f"{line.pipeline}: {error['code']} {error['message']}")


def _moment(run: RunRecord) -> str:
    return f"{run.started_at:%Y-%m-%d %H:%M:%S}"


def _rows(number: int) -> str:
    return f"{number} row" if number == 1 else f"{number} rows"


def _success(run: RunRecord) -> str:
    from esker.cli.output import rows_in_words

    result = run.result or {}
    rows = rows_in_words(result.get("rows") or {})
    told = f"{_moment(run)}, {rows}" if isinstance(rows, str) else f"{_moment(run)}, {_rows(rows)}"
    changeset = result.get("changeset")
    return told if changeset is None else f"{told}, changeset {changeset}"
