"""What a run on a platform begins and ends with: the project's files, its variables, its result."""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

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
        try:
            yield folder
        finally:
            _forget_modules(folder.resolve())


def _forget_modules(folder: Path) -> None:
    """Let code that was imported from a folder be imported anew.

    A function on Lambda goes on in a process that has run before, perhaps with an earlier archive.
    """
    for name, module in list(sys.modules.items()):
        # A package may have no file of its own, and no end of places.
        places = [getattr(module, "__file__", None), *_places_of(module)]
        if any(Path(place).resolve().is_relative_to(folder) for place in places if isinstance(place, str)):
            sys.modules.pop(name, None)
    sys.path[:] = [place for place in sys.path if not Path(place).resolve().is_relative_to(folder)]
    importlib.invalidate_caches()


def _places_of(module: ModuleType) -> list[Any]:
    try:
        return list(getattr(module, "__path__", ()))
    except Exception:  # a module of somebody's who answers to everything
        return []


def keep_result(place: str, text: str) -> None:
    """Write down how a run ended, here or in S3: platforms tell others no more than that a job failed."""
    if place.startswith("s3://"):
        store, path = fs.FileSystem.from_uri(place)
        with store.open_output_stream(path) as stream:
            stream.write(text.encode())
    else:
        Path(place).write_text(text, encoding="utf-8")
