"""Do one piece of a project's work on a platform: what `run.py` and the image of `esker export` call.

Not a command of its own: Glue hands a script arguments of its own among the job's, and takes no exit status
for an end that went well; Lambda calls a function.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from esker.cli.opening import open_project, open_to_deliver
from esker.errors import ConsumerBusy, EskerError, Unexpected, is_worth_a_retry


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


class WorkFailed(Exception):
    """What a function on Lambda ends with when its work did not go well. The result says why."""


def handler(event: Mapping[str, Any], context: object) -> None:
    """Do what `arguments` of an event say, as a function on Lambda. Raises WorkFailed."""
    try:
        main(event["arguments"])
    except SystemExit as end:
        raise WorkFailed(f"exit status {end.code}") from None


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--esker-project", dest="project", required=True)
    parser.add_argument("--esker-pipelines", dest="pipelines", default="")
    parser.add_argument("--esker-do", dest="work", choices=_WORK, default="run")
    parser.add_argument("--esker-consumer", dest="consumer", default="")
    parser.add_argument("--esker-task", dest="task", type=int, default=0)
    parser.add_argument("--esker-large", dest="large", choices=("here", "elsewhere"), default="here")
    parser.add_argument("--esker-env", dest="env")
    parser.add_argument("--esker-secrets", dest="secrets")
    parser.add_argument("--esker-result", dest="result")
    return parser.parse_known_args(list(arguments))[0]


def _run(given: argparse.Namespace) -> tuple[int, dict[str, object]]:
    from esker.pipeline.elsewhere import project_folder, secret_variables
    from esker.project.secrets import masked, redact

    try:
        if given.secrets:
            os.environ.update(secret_variables(given.secrets))
        with project_folder(given.project) as folder:
            document, errors, status = _WORK[given.work](folder, given)
    except EskerError as error:
        failed: EskerError = error
    except Exception as error:
        failed = Unexpected.reported(error, redact)
    else:
        return status, {**_judged(errors, status), **masked(document)}
    told = _judged([failed], failed.exit_status)
    return failed.exit_status, {**told, "error": masked(failed.as_json())}


def _judged(errors: Sequence[EskerError], status: int) -> dict[str, object]:
    """Return the result that the caller reads at the end of the work."""
    needs_spark = any(error.is_for_spark for error in errors)
    return {"exit_status": status, "retry": is_worth_a_retry(errors), "needs_spark": needs_spark}


_Ended = tuple[dict[str, Any], list[EskerError], int]
"""What came of the work, the errors in it, and its exit status."""


def _run_pipelines(folder: Path, given: argparse.Namespace) -> _Ended:
    pipelines = list(filter(None, given.pipelines.split(",")))
    report = open_project(folder, given.env, pipelines).run_all(pipelines)
    errors = [each.error for each in report.pipelines if each.error is not None]
    return report.as_json(), errors, report.exit_status


def _deliver(folder: Path, given: argparse.Namespace) -> _Ended:
    opened = open_to_deliver(folder, given.env)
    # The caller reads that the work needs Spark, and starts it again on a runner with Spark.
    opened.hands_over = given.large == "elsewhere"
    report = opened.deliver_all([given.consumer])
    errors = [each.error for each in report.consumers if each.error is not None]
    return report.as_json(), errors, report.exit_status


def _begin_reindex(folder: Path, given: argparse.Namespace) -> _Ended:
    plan = open_project(folder, given.env).reindex_plan(given.consumer)
    # Only the numbers: a state machine holds no more than 256 KB.
    left = [task.number for task in plan.tasks if not task.is_done]
    return {"consumer": plan.consumer, "into": plan.into, "tasks": left}, [], 0


def _do_task(folder: Path, given: argparse.Namespace) -> _Ended:
    return open_to_deliver(folder, given.env).run_reindex_task(given.consumer, given.task).as_json(), [], 0


def _end_reindex(folder: Path, given: argparse.Namespace) -> _Ended:
    result = open_project(folder, given.env).reindex(given.consumer)
    error = result.error
    if result.holder is not None:
        # Who waits for the end must not take it for done.
        error = ConsumerBusy(given.consumer, result.holder)
        result = replace(result, error=error)
    errors = [error] if error is not None else []
    return result.as_json(), errors, errors[0].exit_status if errors else 0


_WORK = {
    "run": _run_pipelines,
    "deliver": _deliver,
    "reindex-begin": _begin_reindex,
    "reindex-task": _do_task,
    "reindex-end": _end_reindex,
}


if __name__ == "__main__":
    main()
