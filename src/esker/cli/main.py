"""The command line: one file per verb; errors become text, JSON and exit statuses here."""

from __future__ import annotations

import sys
import tempfile
import traceback
from pathlib import Path

import typer

from esker.cli import check, doctor, init, peek, plan, run, schema, show, status, version
from esker.errors import EskerError, Interrupted

app = typer.Typer(
    name="esker",
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
    doctor.doctor,
    schema.schema,
    version.version,
):
    app.command()(verb)


def main() -> None:
    """Run the command line and end the process with its exit status."""
    try:
        app()
    except EskerError as error:
        _fail(error)
    except KeyboardInterrupt:
        _fail(Interrupted())
    except BrokenPipeError:
        # The reader of our output went away (`esker show … | head`); that is no failure of ours.
        sys.stderr.close()
        raise SystemExit(0) from None
    except Exception as error:
        _fail(_unexpected(error))


def _fail(error: EskerError) -> None:
    from esker.cli.output import print_error

    print_error(error, as_json="--json" in sys.argv)
    raise SystemExit(error.exit_status)


def _unexpected(error: Exception) -> EskerError:
    with tempfile.NamedTemporaryFile(
        "w", prefix="esker-", suffix=".log", delete=False, encoding="utf-8"
    ) as report:
        report.write("".join(traceback.format_exception(error)))
    return EskerError(
        f"unexpected {type(error).__name__}: {error}",
        reason="This is a mistake in Esker, not in your project.",
        remedy=f"Report it with {Path(report.name)}",
    )
