"""Printing: tables for people, one JSON document for programs, messages on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from esker.errors import EskerError
from esker.project.secrets import masked, redact

if TYPE_CHECKING:
    from rich.console import Console

    from esker.pipeline.result import RunReport

_UNITS = ("B", "kB", "MB", "GB", "TB")


def console(*, stderr: bool = False) -> Console:
    """Return a console that never breaks lines when nobody sits before it."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 200
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=not stream.isatty())


def print_json(document: Any) -> None:
    """Print a JSON document, secrets masked."""
    text = json.dumps(masked(document), indent=2, ensure_ascii=False, default=_plain)
    sys.stdout.write(text + "\n")


def say(text: str) -> None:
    """Print a line for a person."""
    sys.stdout.write(redact(text) + "\n")


def tell(text: str) -> None:
    """Print a message beside the result."""
    from rich.text import Text

    console(stderr=True).print(Text(redact(text), style="dim"))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """Print rows as a table; numbers stand at the right.

    Lines are broken between words. Where even that is too wide, each row becomes a list of its values.
    """
    from rich.markup import escape
    from rich.table import Table

    rows = [tuple(row) for row in rows]
    shown = [[redact(cell(value)) for value in row] for row in rows]
    out = console()
    widths = _widths([columns, *shown], out.width - 3 * len(columns) - 1)
    if widths is None:
        _print_lists(out, columns, shown, title)
        return
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for index, column in enumerate(columns):
        values = [row[index] for row in rows if row[index] is not None]
        numeric = bool(values) and all(isinstance(v, int | float | Decimal) for v in values)
        table.add_column(escape(column), justify="right" if numeric else "left", width=widths[index])
    for cells in shown:
        table.add_row(*(escape(text) for text in cells))
    out.print(table)


def _widths(lines: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Return widths of columns that break no word, or None where there is not enough room."""
    from rich.cells import cell_len

    texts = list(zip(*lines, strict=True))
    least = [max(cell_len(word) for text in column for word in (text.split() or [""])) for column in texts]
    most = [
        max(cell_len(line) for text in column for line in (text.splitlines() or [""])) for column in texts
    ]
    spare = room - sum(least)
    if spare < 0:
        return None
    widths = list(least)
    # Whoever needs little gets all of it; the widest share what is left.
    for rank, index in enumerate(sorted(range(len(least)), key=lambda i: most[i] - least[i])):
        share = min(most[index] - least[index], spare // (len(least) - rank))
        widths[index] += share
        spare -= share
    return widths


def _print_lists(
    out: Console, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None
) -> None:
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    if title:
        out.print(Text(title, style="bold"))
    for number, cells in enumerate(rows):
        if number:
            out.print()
        values = Table.grid(padding=(0, 2))
        values.add_column(style="bold", no_wrap=True)
        values.add_column(overflow="fold")
        for column, text in zip(columns, cells, strict=True):
            values.add_row(escape(column), escape(text))
        out.print(values)


def print_rows(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], title: str | None = None) -> None:
    """Print rows of data as a table."""
    print_table(columns, [[row.get(name) for name in columns] for row in rows], title)


def end_with(report: RunReport, *, as_json: bool) -> NoReturn:
    """Print how runs ended, and end the command with the status that they give it."""
    if as_json:
        print_json(report.as_json())
    else:
        _print_report(report)
    raise typer.Exit(report.exit_status)


def _print_report(report: RunReport) -> None:
    if not report.pipelines:
        say("nothing is due")
        return
    print_table(
        ("pipeline", "status", "table", "rows", "batches", "changeset", "written", "seconds"),
        [
            (
                result.pipeline,
                result.status,
                result.table,
                rows_in_words(asdict(result.rows)),
                result.batches,
                result.changeset,
                size(result.bytes_written),
                round(result.seconds, 1),
            )
            for result in report.pipelines
        ],
    )
    for result in report.pipelines:
        for note in result.notes:
            say(f"{result.pipeline}: {note}")
        if result.error is not None:
            print_error(result.error, as_json=False, pipeline=result.pipeline)


def rows_in_words(counts: Mapping[str, int]) -> int | str:
    """Return what happened to rows: a number when all were inserted, else each outcome."""
    happened = {name: number for name, number in counts.items() if number and name != "read"}
    if set(happened) <= {"inserted"}:
        return happened.get("inserted", 0)
    return ", ".join(f"{number} {name}" for name, number in happened.items())


def print_error(error: EskerError, *, as_json: bool, pipeline: str | None = None) -> None:
    """Print what happened, why, and what to do. `pipeline` is where, if the error does not say so."""
    if as_json:
        print_json({"status": "failed", "error": error.as_json()})
        return
    from rich.text import Text

    out = console(stderr=True)
    told = str(error)
    if pipeline is not None and f'"{pipeline}"' not in told:
        told = f'pipeline "{pipeline}": {told}'
    first, *others = redact(told).splitlines() or [""]
    out.print(Text.assemble(("error ", "bold red"), (error.code, "bold"), " ", first))
    for line in others:  # a project file may have several problems: one below the other
        out.print(Text(" " * len(f"error {error.code} ") + line))
    if error.reason:
        out.print(Text("  why: " + redact(error.reason)))
    for index, line in enumerate(error.remedy.splitlines()):
        out.print(Text(("  do:  " if index == 0 else "       ") + redact(line)))


def cell(value: Any) -> str:
    """Return a value as it stands in a table."""
    if value is None:
        return "—"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value}"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=_plain)
    return str(value)


def size(count: int) -> str:
    """Return a number of bytes for people."""
    amount = float(count)
    for unit in _UNITS:
        if amount < 1000 or unit == _UNITS[-1]:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError("unreachable")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.hex()
    return str(value)
