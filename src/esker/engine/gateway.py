"""Start and stop the JVM that Spark runs in, with all its output going to a file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pyspark
from pyspark.conf import SparkConf
from pyspark.java_gateway import launch_gateway

from esker.engine.java import Java, find_java
from esker.errors import SparkFailed

PLATFORM_LOG = "the log of the driver, where the platform keeps it"


def join() -> Any:
    """Return the gateway to the Java that this program was started from, or raise SparkFailed."""
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    except Exception as error:
        raise SparkFailed("Java does not answer", str(error), PLATFORM_LOG) from error


def launch(conf: Mapping[str, str], log: Path, java: Java | None = None) -> Any:
    """Start a JVM with Spark's classes, by the Java that is found unless told, and return the gateway to it.

    `conf` holds only what the JVM needs on its command line (memory, class path): everybody on the
    machine can read a command line, so no secret may be in it.
    """
    java = java or find_java()
    log.parent.mkdir(parents=True, exist_ok=True)
    settings = SparkConf(loadDefaults=False)
    for key, value in conf.items():
        settings.set(key, value)
    begin = log.stat().st_size if log.exists() else 0
    try:
        with _environment(java), log.open("ab") as output:
            return launch_gateway(  # type: ignore[no-untyped-call]
                settings, popen_kwargs={"stdout": output, "stderr": subprocess.STDOUT}
            )
    except Exception as error:
        why = _first_lines(log, begin) or str(error)
        raise SparkFailed("Java did not start", why, str(log)) from error


def _first_lines(log: Path, begin: int) -> str:
    """Return the first two lines after an offset of a log: the reason, where Java itself refuses to start."""
    with suppress(OSError), log.open(encoding="utf-8", errors="replace") as lines:
        lines.seek(begin)
        # Java names the variables that it takes options from, and warns, before it gives the reason.
        said = (line.strip() for line in lines if not line.startswith(("Picked up ", "WARNING")))
        return "; ".join(islice(filter(None, said), 2))
    return ""


@contextmanager
def _environment(java: Java) -> Iterator[None]:
    """Let Spark's launcher find this Java, and the Spark that belongs to the installed PySpark."""
    names = {"JAVA_HOME": str(java.home)}
    spark = Path(pyspark.__file__).parent
    if (spark / "bin" / "spark-submit").is_file():
        # SPARK_HOME may name another Spark of the machine; its version would not fit PySpark's.
        names["SPARK_HOME"] = str(spark)
    former = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def stop(gateway: Any) -> None:
    """End a JVM that `launch` started."""
    gateway.shutdown()
    process = gateway.proc
    process.stdin.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
