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
        if line.last_run and line.last_run.error:
            error = line.last_run.error
            say(f"{line.pipeline}: {error['code']} {error['message']}")


def _moment(run: RunRecord) -> str:
    return f"{run.started_at:%Y-%m-%d %H:%M:%S}"


def _success(run: RunRecord) -> str:
    result = run.result or {}
    rows = (result.get("rows") or {}).get("inserted", 0)
    told = f"{_moment(run)}, {rows} row{'' if rows == 1 else 's'}"
    changeset = result.get("changeset")
    return told if changeset is None else f"{told}, changeset {changeset}"
