"""`esker show`: everything about a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, LimitOption, ProjectOption

if TYPE_CHECKING:
    from esker.engine.iceberg.file_statistics import Files
    from esker.pipeline.show import TableReport


def show(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Namespace and table: shop.orders")],
    where: Annotated[
        str | None, typer.Option("--where", "-w", help="Spark SQL condition; shows what it would read.")
    ] = None,
    limit: LimitOption = 10,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a table: columns, partitions, files, snapshots, column statistics and some rows."""
    from esker.cli.opening import open_to_run
    from esker.cli.output import print_json

    report = open_to_run(project, env).show(table, where=where, limit=limit)
    if as_json:
        print_json(report.as_json())
    else:
        _print(report)


def _print(report: TableReport) -> None:
    from esker.cli.output import print_rows, print_table, say, size

    table, files = report.table, report.files
    say(f"{table.id} in {table.location}")
    say(
        f"Iceberg v{table.format_version}, {_rows(files)} in {files.files} files, {size(files.bytes)}, "
        f"partitioned by {', '.join(table.partition_fields) or 'nothing'}"
        + (f", sorted by {', '.join(str(field) for field in table.sort_fields)}" if table.sort_fields else "")
    )
    for upstream in report.metadata.lineage.upstream:
        say(
            f"loaded by pipeline {upstream.pipeline} from {upstream.source} {upstream.reads}"
            + (f", contract {upstream.contract}" if upstream.contract else "")
        )
    statistics = {found.column: found for found in report.statistics}
    lines = []
    for column in table.columns:
        found = statistics.get(column.name)
        lines.append(
            (
                column.name,
                str(column.type) + (" required" if column.required else ""),
                found.nulls if found else None,
                found.lowest if found else None,
                found.highest if found else None,
                size(found.bytes) if found and found.bytes else None,
                column.doc or "",
            )
        )
    counted = (
        " (deleted rows count until their files are rewritten)" if files.deleted or not files.is_exact else ""
    )
    print_table(
        ("column", "type", "nulls", "lowest", "highest", "on disk", "doc"), lines, f"columns{counted}"
    )
    print_table(
        ("snapshot", "committed", "operation", "added", "total", "pipeline", "changeset"),
        [
            (
                s.snapshot_id,
                s.committed_at[:19],
                s.operation,
                s.added_records,
                s.total_records,
                s.pipeline,
                s.changeset,
            )
            for s in report.snapshots
        ],
        "snapshots, newest first",
    )
    if report.filtered:
        would = report.filtered.files
        say(
            f"where {report.filtered.where}: reads {would.files} of {files.files} files, "
            f"{size(would.bytes)} of {size(files.bytes)}"
        )
    print_rows([column.name for column in table.columns], report.rows, "rows")


def _rows(files: Files) -> str:
    shown = f"{files.rows} rows" if files.is_exact else f"at most {files.rows} rows"
    return f"{shown} and {files.deleted} deleted ones" if files.deleted else shown
