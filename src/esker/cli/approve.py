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
    from esker.cli.live import live
    from esker.cli.opening import open_project
    from esker.cli.output import end_with
    from esker.pipeline.result import RunReport

    opened = open_project(project, env, [pipeline])
    with live() as listen:
        result = opened.approve(pipeline, listen)
    end_with(RunReport([result]), as_json=as_json)
