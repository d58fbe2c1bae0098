"""Start and stop the JVM that Spark runs in, with all its output going to a file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.conf import SparkConf
from pyspark.java_gateway import launch_gateway

from esker.engine.java import find_java
from esker.errors import SparkFailed


def launch(conf: Mapping[str, str], log: Path) -> Any:
    """Start a JVM with Spark's classes and return the gateway to it.

    `conf` holds only what the JVM needs on its command line (memory, class path): everybody on the
    machine can read a command line, so no secret may be in it.
    """
    java = find_java()
    log.parent.mkdir(parents=True, exist_ok=True)
    settings = SparkConf(loadDefaults=False)
    for key, value in conf.items():
        settings.set(key, value)
    former = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(java.home)
    try:
        with log.open("ab") as output:
            return launch_gateway(  # type: ignore[no-untyped-call]
                settings, popen_kwargs={"stdout": output, "stderr": subprocess.STDOUT}
            )
    except Exception as error:
        raise SparkFailed("Java did not start", str(error), str(log)) from error
    finally:
        if former is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = former


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
