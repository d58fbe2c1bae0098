"""`esker export`: what other programs need to read the project's tables."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, ProjectOption


class Reader(StrEnum):
    """Programs that can be written for."""

    trino = "trino"
    duckdb = "duckdb"
    pyiceberg = "pyiceberg"
    athena = "athena"


def export(
    reader: Annotated[Reader, typer.Argument(metavar="READER", help="trino, duckdb, pyiceberg or athena.")],
    catalog: Annotated[
        str | None, typer.Option("--catalog", "-c", help="A connection. Default: the project's catalog.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write a file into this folder. Default: print it.")
    ] = None,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what another program needs to read the tables. Secrets stand there as variables."""
    from esker.cli.output import print_json, say, tell
    from esker.pipeline.export import export_reader
    from esker.project import load_project

    found = export_reader(load_project(project or Path(), env), reader.value, catalog)
    target = None
    if to is not None:
        target = to / found.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(found.text, encoding="utf-8")
    if as_json:
        file = None if target is None else str(target)
        print_json({"name": found.name, "text": found.text, "variables": found.variables, "file": file})
    else:
        say(found.text.rstrip("\n") if target is None else f"wrote {target}")
    if found.variables:
        tell(f"Set where it is used: {', '.join(found.variables)}")
