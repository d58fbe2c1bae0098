"""Run pipelines where a platform has started Spark: what `run.py` of `esker export` calls.

Not a command of its own: Glue hands a script arguments of its own among the job's, and takes no exit status
for an end that went well.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from esker.cli.opening import open_project
from esker.errors import EskerError, Unexpected


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the pipelines that the arguments name, and end with Esker's exit status if it is not 0."""
    given = _parse(sys.argv[1:] if arguments is None else arguments)
    status, document = _run(given)
    text = json.dumps(document, default=str)
    print(text, flush=True)
    if given.result is not None:
        from esker.pipeline.elsewhere import keep_result

        try:
            keep_result(given.result, text)
        except Exception as error:
            # What was published stays published, and what failed is told above.
            print(f"the result could not be written to {given.result}: {error}", file=sys.stderr, flush=True)
    if status:
        raise SystemExit(status)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--esker-project", dest="project", required=True)
    parser.add_argument("--esker-pipelines", dest="pipelines", default="")
    parser.add_argument("--esker-env", dest="env")
    parser.add_argument("--esker-secrets", dest="secrets")
    parser.add_argument("--esker-result", dest="result")
    return parser.parse_known_args(list(arguments))[0]


def _run(given: argparse.Namespace) -> tuple[int, dict[str, object]]:
    from esker.pipeline.elsewhere import project_folder, secret_variables
    from esker.project.secrets import masked, redact

    pipelines = list(filter(None, given.pipelines.split(",")))
    try:
        if given.secrets:
            os.environ.update(secret_variables(given.secrets))
        with project_folder(given.project) as folder:
            report = open_project(folder, given.env, pipelines).run_all(pipelines)
    except EskerError as error:
        failed: EskerError = error
    except Exception as error:
        failed = Unexpected.reported(error, redact)
    else:
        return report.exit_status, {"exit_status": report.exit_status, **masked(report.as_json())}
    return failed.exit_status, {"exit_status": failed.exit_status, "error": masked(failed.as_json())}
