"""Compile Esker's Java classes with Spark's compiler, into the source tree: `make java`."""

from __future__ import annotations

import tempfile
from importlib.resources import files
from pathlib import Path

from esker.engine.iceberg.table_state import FOLDER, PACKAGE_FOLDER, compiled
from tests.folder import Folder


def main() -> None:
    """Write the classes beside their source."""
    target = Path(str(files(PACKAGE_FOLDER).joinpath(FOLDER)))
    with tempfile.TemporaryDirectory(prefix="esker-java-") as scratch:
        context = Folder(Path(scratch) / "project").open().engine.spark.sparkContext
        for name, content in compiled(context._jvm).items():
            (target / f"{name}.class").write_bytes(content)
            print(f"{target / name}.class: {len(content):,} bytes")


if __name__ == "__main__":
    main()
