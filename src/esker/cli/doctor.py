"""`esker doctor`: check what Esker needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, ProjectOption


def doctor(
    patience: Annotated[
        int, typer.Option("--patience", min=1, help="Seconds that Spark gets for a first small job.")
    ] = 60,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check Java, Spark, jars, state database, catalogs and stores; say how to mend what fails."""
    from esker.cli.output import print_json, say
    from esker.project import load_project

    found = load_project(project or Path(), env)
    from esker.pipeline.doctor import examine

    findings = []
    for finding in examine(found, patience):
        findings.append(finding)
        if not as_json:
            say(f"{'ok  ' if finding.ok else 'FAIL'} {finding.check}: {finding.detail}")
            for line in finding.remedy.splitlines():
                say(f"     → {line}")
    healthy = all(finding.ok for finding in findings)
    if as_json:
        print_json(
            {
                "status": "succeeded" if healthy else "failed",
                "checks": [finding.as_json() for finding in findings],
            }
        )
    raise typer.Exit(0 if healthy else 1)
