"""Classes of Spark and Iceberg as Java keeps them ready, for the many short-lived processes of the tests.

    python -m tests.servers.class_archive

makes the archive, once; `install.sh` calls it. Each Java that a test starts with the jars of the embedded
catalog begins with these classes: a run of a small project needs a quarter less processor time. Java passes
over an archive of another Java, or for other jars.
"""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

_CACHE = Path(__file__).parents[2] / ".cache" / "classes"
_SPARK = find_spec("pyspark")
_WHERE = sha256(str(_SPARK and _SPARK.origin).encode()).hexdigest()[:8]
"""Java takes an archive only for jars that lie where they did."""
_OWN = _CACHE / f"spark-{version('pyspark')}-{_WHERE}.jsa"


def use_of_archive() -> str:
    """Return what to tell Java, if there is an archive."""
    return f"-XX:SharedArchiveFile={_OWN}" if _OWN.exists() else ""


def main() -> int:
    if _OWN.exists():
        return 0
    from pyspark import SparkContext

    from esker.engine.java import find_java
    from tests.command import CHILD_SPARK
    from tests.folder import Folder

    jcmd = find_java().home / "bin" / "jcmd"
    if not jcmd.exists():
        print(f"{jcmd} is missing, so that Java starts without an archive of classes: tests take longer")
        return 0
    _CACHE.mkdir(parents=True, exist_ok=True)
    conf = CHILD_SPARK["conf"]
    options = f"{conf['spark.driver.extraJavaOptions']} -XX:+RecordDynamicDumpInfo -Xlog:disable"
    spark = CHILD_SPARK | {"conf": conf | {"spark.driver.extraJavaOptions": options}}
    with TemporaryDirectory() as place:
        pipeline = Folder.files_pipeline(mode="upsert", key=["id"], lane="large")
        folder = Folder(Path(place) / "project", spark=spark, pipelines={"sales": pipeline})
        folder.write_csv("landing/a.csv", ["id", "title"], [(1, "one"), (2, "two")])
        folder.run()
        folder.rows()
        context = SparkContext._active_spark_context
        assert context is not None
        made = _OWN.with_suffix(".made")
        java = context._gateway.proc.pid  # type: ignore[union-attr]
        done = subprocess.run(
            [jcmd, str(java), "VM.cds", "dynamic_dump", made], capture_output=True, text=True, check=False
        )
        context.stop()
    if not made.exists():
        print(f"no archive of classes could be made, so that tests take longer: {done.stdout}{done.stderr}")
        return 1
    made.rename(_OWN)
    return 0


if __name__ == "__main__":
    sys.exit(main())
