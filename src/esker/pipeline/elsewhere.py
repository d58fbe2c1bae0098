"""What a run on a platform begins and ends with: the project's files, its variables, its result."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyarrow import fs


def secret_variables(name: str) -> dict[str, str]:
    """Return the variables that a secret of AWS Secrets Manager holds, as one JSON object."""
    import boto3  # noqa: PLC0415 (optional: Glue has it, and the files of `esker export emr` bring it)

    text = boto3.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"]
    return {str(key): str(value) for key, value in json.loads(text).items()}


@contextmanager
def project_folder(place: str) -> Iterator[Path]:
    """Give a project's folder: a folder, or what an archive holds, here or in S3, until it is done with."""
    if not place.endswith(".zip"):
        yield Path(place)
        return
    with tempfile.TemporaryDirectory(prefix="esker-project-", ignore_cleanup_errors=True) as name:
        archive, folder = Path(place), Path(name)
        if place.startswith("s3://"):
            archive = folder / "project.zip"
            store, path = fs.FileSystem.from_uri(place)
            with store.open_input_stream(path) as stream:
                archive.write_bytes(stream.read())
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
        yield folder


def keep_result(place: str, text: str) -> None:
    """Write down how a run ended, here or in S3: platforms tell others no more than that a job failed."""
    if place.startswith("s3://"):
        store, path = fs.FileSystem.from_uri(place)
        with store.open_output_stream(path) as stream:
            stream.write(text.encode())
    else:
        Path(place).write_text(text, encoding="utf-8")
