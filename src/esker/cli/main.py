"""The command line: one file per verb; errors become text, JSON and exit statuses here."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from esker.cli import (
    adopt,
    approve,
    backfill,
    changes,
    check,
    contract,
    deliver,
    doctor,
    export,
    fsck,
    init,
    peek,
    plan,
    quality,
    quarantine,
    reconcile,
    reindex,
    reject,
    run,
    schema,
    show,
    sql,
    status,
    version,
    windows,
)
from esker.errors import EskerError, Interrupted, ProjectError, Unexpected


class _Verbs(TyperGroup):
    """All verbs. Ctrl-C becomes an error with a message; typer would end the process without one."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None


app = typer.Typer(
    name="esker",
    cls=_Verbs,
    help="Carry data from any source into Apache Iceberg tables, exactly once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 done, 1 failed, 2 usage or project, 3 contract, 4 unreachable, "
    "5 fenced or conflict, 6 held, 130 interrupted.",
)
for verb in (
    init.init,
    check.check,
    plan.plan,
    run.run,
    peek.peek,
    status.status,
    show.show,
    changes.changes,
    deliver.deliver,
    reindex.reindex,
    quality.quality,
    backfill.backfill,
    reconcile.reconcile,
    windows.windows,
    approve.approve,
    reject.reject,
    adopt.adopt,
    sql.sql,
    export.export,
    doctor.doctor,
    fsck.fsck,
    schema.schema,
    version.version,
):
    app.command()(verb)
app.add_typer(contract.app, name="contract")
app.add_typer(quarantine.app, name="quarantine")


def main() -> None:
    """Run the command line and end the process with its exit status."""
    as_json = "--json" in sys.argv
    try:
        # In standalone mode typer prints usage errors itself: well for people, but never as JSON.
        exit_status = app(prog_name="esker", standalone_mode=not as_json)
    except EskerError as error:
        _fail(error, as_json)
    except typer.TyperException as error:
        _fail(_misused(error), as_json)
    except KeyboardInterrupt:
        _fail(Interrupted(), as_json)
    except Exception as error:
        from esker.project.secrets import redact

        _fail(Unexpected.reported(error, redact), as_json)
    raise SystemExit(exit_status)


def _fail(error: EskerError, as_json: bool) -> NoReturn:
    from esker.cli.output import print_error

    print_error(error, as_json=as_json)
    raise SystemExit(error.exit_status)


def _misused(error: typer.TyperException) -> ProjectError:
    return ProjectError(
        error.format_message(),
        reason="The command line could not be understood. Nothing was started.",
        remedy="esker --help lists the commands, esker COMMAND --help the options of one.",
    )
