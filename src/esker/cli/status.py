"""`esker status`: how the pipelines are doing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from esker.cli.options import EnvOption, JsonOption, ProjectOption


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
    rows = []
    for line in lines:
        result = (line.last_success.result or {}) if line.last_success else {}
        rows.append(
            (
                line.pipeline,
                line.table,
                line.status,
                f"{line.last_run.started_at:%Y-%m-%d %H:%M:%S}" if line.last_run else None,
                f"{line.last_success.started_at:%Y-%m-%d %H:%M:%S}" if line.last_success else None,
                result.get("changeset"),
                (result.get("rows") or {}).get("inserted"),
                "yes" if line.is_due else "",
            )
        )
    print_table(
        ("pipeline", "table", "last run", "at (UTC)", "last success", "changeset", "rows then", "due"), rows
    )
    for line in lines:
        if line.last_run and line.last_run.error:
            error = line.last_run.error
            say(f"{line.pipeline}: {error['code']} {error['message']}")
