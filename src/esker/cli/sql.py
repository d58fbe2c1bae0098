"""`esker sql`: SQL on the project's catalogs."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, LimitOption, ProjectOption
from esker.errors import EskerError, ProjectError

if TYPE_CHECKING:
    from esker.pipeline.sql.run import Answer

CommandOption = Annotated[
    str | None, typer.Option("--command", "-c", help="Statements, separated by semicolons.")
]
FileOption = Annotated[
    Path | None, typer.Option("--file", "-f", help="A file of statements; - reads standard input.")
]


def sql(
    command: CommandOption = None,
    file: FileOption = None,
    limit: LimitOption = 100,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run Spark SQL on the project's catalogs.

    INSERT, UPDATE, DELETE and MERGE on a pipeline's table go through its loader: change log, ledger and all.
    """
    text = _text(command, file)
    from esker.cli.opening import open_project
    from esker.cli.output import print_json

    answers = open_project(project, env).sql_answers(text)
    if not as_json:
        for answer in answers:
            _print(answer, limit)
        return
    done = []
    try:
        for answer in answers:
            done.append(answer.as_json(limit))
    except EskerError as error:
        print_json({"status": "failed", "statements": done, "error": error.as_json()})
        raise typer.Exit(error.exit_status) from error
    print_json({"status": "succeeded", "statements": done})


def _text(command: str | None, file: Path | None) -> str:
    if (command is None) == (file is None):
        raise ProjectError(
            "there is nothing to run" if command is None else "statements are given twice",
            reason="Statements come from the command line or from a file.",
            remedy='Write: esker sql -c "SELECT …", or: esker sql -f FILE',
        )
    if command is not None:
        return command
    assert file is not None
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectError(
            f'file "{file}" cannot be read',
            reason=getattr(error, "strerror", None) or str(error),
            remedy="Name a text file in UTF-8.",
        ) from error


def _print(answer: Answer, limit: int) -> None:
    from esker.cli.output import print_rows, rows_in_words, say

    if answer.run is not None:
        counts = rows_in_words({**asdict(answer.run.rows)})
        say(f"{answer.run.table}: {counts} rows, changeset {answer.run.changeset}")
        for note in answer.run.notes:
            say(note)
        return
    shown = answer.show(limit)
    if not shown.columns:
        say("done")
        return
    print_rows(shown.columns, shown.rows)
    if shown.is_cut:
        say(f"the first {limit} rows; --limit shows more")
