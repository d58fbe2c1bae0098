"""`esker approve`: let a held batch happen."""

from __future__ import annotations

from esker.cli.options import EnvOption, JsonOption, PipelineArgument, ProjectOption


def approve(
    pipeline: PipelineArgument,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a held batch happen."""
    from esker.cli.live import run_live
    from esker.cli.opening import open_project

    opened = open_project(project, env, [pipeline])
    run_live(lambda listen: opened.approve(pipeline, listen), as_json=as_json)
