"""Java starts with the Spark that belongs to PySpark, whatever the user's environment says."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark
import pytest

from esker.engine.gateway import launch, stop


@pytest.mark.process
def test_another_spark_of_the_machine_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SPARK_HOME may name an older Spark: it is not used, and the variables are as before afterwards."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "another"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    gateway = launch({}, tmp_path / "log")
    try:
        version = gateway.jvm.org.apache.spark.package.SPARK_VERSION()
    finally:
        stop(gateway)
    assert version == pyspark.__version__
    assert gateway.proc.poll() is not None, "Java has ended"
    assert os.environ["SPARK_HOME"] == str(tmp_path / "another")
    assert "JAVA_HOME" not in os.environ
