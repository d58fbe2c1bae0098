"""`esker reject`: leave a held batch out and go on behind it."""

from __future__ import annotations

from esker.cli.options import EnvOption, JsonOption, PipelineArgument, ProjectOption


def reject(
    pipeline: PipelineArgument,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Leave a held batch out and go on behind it."""
    from esker.cli.opening import open_project
    from esker.cli.output import print_json, say

    waiting = open_project(project, env, [pipeline]).reject(pipeline)
    if as_json:
        print_json({"status": "succeeded", "pipeline": pipeline, "rejected": waiting.message})
        return
    say(f"{pipeline}: left out: {waiting.message}")
