"""`esker status`: how pipelines and consumers are doing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from esker.cli.options import EnvOption, JsonOption, ProjectOption

if TYPE_CHECKING:
    from esker.ledger.runs import RunRecord


def status(project: ProjectOption = None, env: EnvOption = None, as_json: JsonOption = False) -> None:
    """Show each pipeline's last run and how far consumers are, from the history. Needs no Spark."""
    from esker.cli.output import print_json, print_table, say
    from esker.ledger.state import State
    from esker.pipeline.status import consumers_status, project_status
    from esker.project import load_project

    found = load_project(project or Path(), env)
    with closing(State.open(found)) as state:
        lines = project_status(found, state, state.now())
        told = consumers_status(found, state)
    if as_json:
        document = {"status": "succeeded", "pipelines": [line.as_json() for line in lines]}
        print_json(document | {"consumers": [each.as_json() for each in told]})
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
    if told:
        print_table(
            ("consumer", "pipeline", "last delivery (UTC)", "offset", "lag", "dead"),
            [
                (
                    each.consumer,
                    each.pipeline,
                    f"{each.status} {each.last.ended_at:%Y-%m-%d %H:%M:%S}" if each.last else each.status,
                    each.offset,
                    "unknown" if each.lag is None else each.lag,
                    each.last.result["dead"] if each.last else None,
                )
                for each in told
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
        if line.missing is not None:
            say(f"{line.pipeline}: {line.missing.told(line.pipeline)}")


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
