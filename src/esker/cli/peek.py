"""`esker peek`: rows from a source, nothing loaded."""

from __future__ import annotations

from esker.cli.options import EnvOption, JsonOption, LimitOption, PipelineArgument, ProjectOption


def peek(
    pipeline: PipelineArgument,
    limit: LimitOption = 10,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print some rows of a pipeline's source. Nothing is loaded."""
    from esker.cli.opening import open_project
    from esker.cli.output import print_json, print_rows, say

    found = open_project(project, env, [pipeline]).peek(pipeline, limit)
    if as_json:
        print_json(found.as_json())
        return
    if found.rows:
        print_rows(found.columns, found.rows)
        say(f"from {', '.join(found.origins)}; the source has {found.whole}")
    else:
        say(f"no rows here; the source has {found.whole}")
