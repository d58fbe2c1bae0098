"""`esker check`: is the project file right?"""

from __future__ import annotations

from pathlib import Path

from esker.cli.options import EnvOption, JsonOption, ProjectOption


def check(project: ProjectOption = None, env: EnvOption = None, as_json: JsonOption = False) -> None:
    """Check the project file, without Spark and without touching anything."""
    from esker.cli.output import print_json, say
    from esker.project import load_project

    found = load_project(project or Path(), env)
    if as_json:
        print_json(
            {
                "status": "succeeded",
                "project": found.project,
                "environment": found.environment,
                "pipelines": [*found.pipelines, *found.families],
                "consumers": list(found.consumers),
                "notes": list(found.warnings()),
            }
        )
        return
    told = _number(len(found.pipelines) + len(found.families), "pipeline")
    if found.consumers:
        told += f", {_number(len(found.consumers), 'consumer')}"
    say(f"{found.project}: {told}, no problems")
    for warning in found.warnings():
        say(f"  note: {warning}")


def _number(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
