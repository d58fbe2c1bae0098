"""Run pipelines where a platform has started Spark: what `run.py` of `esker export` calls.

Not a command of its own: Glue hands a script arguments of its own among the job's, and takes no exit status
for an end that went well.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from esker.cli.opening import open_project
from esker.errors import EskerError, Unexpected

if TYPE_CHECKING:
    from esker.pipeline.result import RunReport


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the pipelines that the arguments name, and end with Esker's exit status if it is not 0."""
    given = _parse(sys.argv[1:] if arguments is None else arguments)
    status, document = _run(given)
    text = json.dumps(document, default=str)
    print(text, flush=True)
    if given.result is not None:
        _write(given.result, text)
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
    from esker.project.secrets import masked, redact

    try:
        if given.secrets:
            os.environ.update(_secrets(given.secrets))
        report = _report(_folder(given.project), given.env, list(filter(None, given.pipelines.split(","))))
    except EskerError as error:
        failed: EskerError = error
    except Exception as error:
        failed = Unexpected.reported(error, redact)
    else:
        return report.exit_status, {"exit_status": report.exit_status, **masked(report.as_json())}
    return failed.exit_status, {"exit_status": failed.exit_status, "error": masked(failed.as_json())}


def _report(folder: Path, env: str | None, pipelines: Sequence[str]) -> RunReport:
    return open_project(folder, env, pipelines).run_all(pipelines)


def _secrets(name: str) -> dict[str, str]:
    """Return the variables that a secret of AWS Secrets Manager holds, as JSON."""
    import boto3

    text = boto3.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"]
    return {str(key): str(value) for key, value in json.loads(text).items()}


def _folder(place: str) -> Path:
    """Return a project's folder: a folder, or what an archive holds, here or in S3."""
    if not place.endswith(".zip"):
        return Path(place)
    folder = Path(tempfile.mkdtemp(prefix="esker-project-"))
    archive = Path(place)
    if place.startswith("s3://"):
        from pyarrow import fs

        archive = folder / "project.zip"
        store, path = fs.FileSystem.from_uri(place)
        with store.open_input_stream(path) as stream:
            archive.write_bytes(stream.read())
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    return folder


def _write(place: str, text: str) -> None:
    """Keep what came out: where the platform tells whoever asks no more than that a job failed."""
    if place.startswith("s3://"):
        from pyarrow import fs

        store, path = fs.FileSystem.from_uri(place)
        with store.open_output_stream(path) as stream:
            stream.write(text.encode())
    else:
        Path(place).write_text(text, encoding="utf-8")
