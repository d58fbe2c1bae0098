"""`esker contract`: contracts of pipelines."""

from __future__ import annotations

from typing import Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, PipelineArgument, ProjectOption

app = typer.Typer(no_args_is_help=True, help="Contracts: infer one from real data.")

OutputOption = Annotated[
    str | None,
    typer.Option("--output", "-o", help="Where to write it. Default: contracts/PIPELINE.odcs.yaml"),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")]


@app.callback()
def contract() -> None:
    """Contracts of pipelines."""


@app.command()
def infer(
    pipeline: PipelineArgument,
    output: OutputOption = None,
    force: ForceOption = False,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at all rows of a pipeline's source and write a contract for them, ready to edit."""
    from esker.cli.opening import open_project
    from esker.cli.output import print_json, print_table, say

    opened = open_project(project, env, [pipeline])
    found = opened.infer_contract(pipeline, output, overwrite=force)
    if as_json:
        print_json(found.as_json())
        return
    rows = []
    for each in found.columns:
        facts = ["required"] if each.is_required else []
        facts += ["unique"] if each.is_unique else []
        facts += [f"{len(each.values)} values"] if each.values else []
        facts += [f"personal: {each.personal.kind} ({each.personal.why})"] if each.personal else []
        rows.append((each.column.name, str(each.column.type), ", ".join(facts)))
    print_table(["column", "type", "found"], rows)
    for misfit in found.misfits:
        say(f"note: {misfit}")
    say(f"wrote {found.file}, from {found.rows:,} rows")
    if opened.project.contract(pipeline) is None:
        say(f"edit it, then name it in esker.yml: pipelines: {{{pipeline}: {{contract: {found.file}}}}}")
