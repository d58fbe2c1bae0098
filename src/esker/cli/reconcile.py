"""`esker reconcile`: compare all of a source with its table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from esker.cli.options import EnvOption, JsonOption, PipelineArgument, ProjectOption

if TYPE_CHECKING:
    from esker.pipeline.reconcile import Reconciliation

RepairOption = Annotated[
    bool,
    typer.Option("--repair", help="Load what is missing or differs, and delete what has vanished."),
]
ApproveOption = Annotated[
    int | None,
    typer.Option("--approve", help="With --repair: so many rows may be deleted, as was shown."),
]


def reconcile(
    pipeline: PipelineArgument,
    repair: RepairOption = False,
    approve: ApproveOption = None,
    project: ProjectOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare keys and contents of all that a source holds with the table. Only --repair changes it."""
    from esker.cli.live import live
    from esker.cli.opening import open_project
    from esker.cli.output import print_json

    opened = open_project(project, env, [pipeline])
    with live() as listen:
        found = opened.reconcile(pipeline, repair=repair, approved=approve, listen=listen)
    if as_json:
        print_json(found.as_json())
    else:
        _print(found)


def _print(found: Reconciliation) -> None:
    from esker.cli.output import print_table, rows_in_words, say

    say(f"{found.source_keys} keys in the source, {found.table_keys} in {found.table}")
    if found.is_same:
        say("they are the same")
        return
    counts = {"missing": found.missing, "different": found.different, "vanished": found.vanished}
    lines = [
        (kind, count, ", ".join(found.examples.get(kind, ()))) for kind, count in counts.items() if count
    ]
    print_table(("what", "keys", "such as"), lines)
    for result in found.repairs:
        rows = dict(result.as_json()["rows"])
        rows["deleted"] += rows.pop("missing")  # above, what is missing is missing in the table
        say(f"repaired: {rows_in_words(rows)} (changeset {result.changeset})")
    if not found.repairs:
        say(f"to repair it: esker reconcile {found.pipeline} --repair")
