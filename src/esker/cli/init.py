"""`esker init`: write a new project."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from esker.cli.options import JsonOption


def init(
    folder: Annotated[Path, typer.Argument(help="Folder of the new project.")] = Path(),
    as_json: JsonOption = False,
) -> None:
    """Write a project that runs at once: sample files, two pipelines, the embedded catalog."""
    from esker.cli.output import print_json, say
    from esker.project.scaffold import write_sample

    written = write_sample(folder)
    if as_json:
        print_json({"status": "succeeded", "folder": str(folder), "files": [str(path) for path in written]})
        return
    for path in written:
        say(f"wrote {path}")
    here = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    say(f"\nNext: {here}esker run && esker show shop.orders")
