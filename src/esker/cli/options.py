"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ProjectOption = Annotated[
    Path | None, typer.Option("--project", "-p", help="Folder of the project. Default: this folder.")
]
EnvOption = Annotated[str | None, typer.Option("--env", "-e", help="Environment of the project file.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
PipelinesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="PIPELINE", help="Pipelines. Default: all.")
]
PipelineArgument = Annotated[str, typer.Argument(metavar="PIPELINE", help="A pipeline of the project.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=0, help="Most rows to print.")]
