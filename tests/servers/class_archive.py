"""Make the archive of classes that the many short-lived processes of the tests begin with.

    python -m tests.servers.class_archive

loads a small project once and waits until Java has written the archive; `install.sh` calls it. A run of a
small project then needs a quarter less processor time.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from esker.engine.class_archive import archive_of
from esker.engine.jars import provide_jars
from esker.engine.java import find_java
from tests.command import CHILD_SPARK
from tests.folder import Folder


def main() -> int:
    options = CHILD_SPARK["conf"]["spark.driver.extraJavaOptions"]
    with TemporaryDirectory() as place:
        jars = provide_jars(["iceberg", "sqlite"], {}, Path(place) / "log")
        archive = archive_of(find_java(), jars, options)
        if not archive.exists():
            pipeline = Folder.files_pipeline(mode="upsert", key=["id"], lane="large")
            folder = Folder(Path(place) / "project", spark=CHILD_SPARK, pipelines={"sales": pipeline})
            folder.write_csv("landing/a.csv", ["id", "title"], [(1, "one"), (2, "two")])
            folder.run()
            folder.rows()
            _end_java()
    if archive.exists():
        return 0
    tried = archive.with_suffix(".tried")
    why = tried.read_text() if tried.exists() else "Java was not asked to"
    print(f"no archive of classes could be made, so that tests take longer: {why}")
    return 1


def _end_java() -> None:
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    assert context is not None
    context.stop()
    process = context._gateway.proc  # type: ignore[union-attr]
    process.stdin.close()
    process.wait(timeout=120)


if __name__ == "__main__":
    sys.exit(main())
