"""`esker windows`: which windows of time are covered, missing, failed or held."""

from __future__ import annotations

from esker.cli.options import EnvOption, JsonOption, PipelineArgument, ProjectOption


def windows(
    pipeline: PipelineArgument,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print which windows of a pipeline's source are covered, missing, failed or held. Starts Spark only for
    catalogs that need Java."""
    from esker.cli.opening import open_project, open_to_read
    from esker.cli.output import print_json, print_table, say
    from esker.errors import NotWithoutSpark, ReaderNotInstalled, UnknownPipeline

    try:
        found = open_to_read(project, env).windows(pipeline)
    except (NotWithoutSpark, ReaderNotInstalled, UnknownPipeline):
        # A table of a family that no run has asked for yet is found by asking the database.
        found = open_project(project, env, [pipeline]).windows(pipeline)
    if as_json:
        print_json({"pipeline": pipeline, "windows": [line.as_json() for line in found]})
        return
    if not found:
        say("no window is due yet")
        return
    columns = ["from (UTC)", "to (UTC)", "status", "tried", "why"]
    rows = [
        # As --from and --to of a backfill take them.
        [f"{line.since:%FT%T}", f"{line.until:%FT%T}", line.status, line.attempts or "", line.error or ""]
        for line in found
    ]
    print_table(columns, rows)
