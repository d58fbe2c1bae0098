"""What a failed call into the JVM becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from esker.engine.failures import explained
from esker.errors import OutOfMemory, SparkFailed, StoreNotDeclared

_LOG = Path("spark.log")


def test_lost_connection_says_that_java_ended() -> None:
    with pytest.raises(SparkFailed, match="cannot write"), explained("cannot write", _LOG):
        raise Py4JNetworkError("Answer from Java side is empty")


def test_java_that_ended_for_want_of_memory(tmp_path: Path) -> None:
    """The log tells what Java cannot tell any more."""
    log = tmp_path / "spark.log"
    log.write_text("x\n" * 100_000 + "java.lang.OutOfMemoryError: Java heap space\n\tat java.base\n" * 3)
    for error in (Py4JNetworkError("Answer from Java side is empty"), _Dying("cannot be asked")):
        with pytest.raises(OutOfMemory) as told, explained("cannot write", log):
            raise error
        assert str(log) in told.value.reason


@pytest.mark.parametrize("name", ["software/amazon/awssdk/Client", "com/google/cloud/x", "com/azure/core"])
def test_a_store_whose_classes_are_not_there(name: str) -> None:
    """A location in a store that the project does not declare: its client's classes were not loaded."""
    with pytest.raises(StoreNotDeclared), explained("cannot read", _LOG):
        raise PySparkException(f"java.lang.NoClassDefFoundError: {name}")


class _Dying(PySparkException):
    """An error of a Java that does not answer any more."""

    @property
    def java_exception(self) -> Any:
        raise Py4JNetworkError("Error while sending")


def test_interruption_is_not_hidden_by_what_fails_after_it() -> None:
    """After Ctrl-C the connection is closed; the clean-up that follows must not be what is reported."""
    with pytest.raises(KeyboardInterrupt), explained("cannot write", _LOG):
        _interrupted_write()


def _interrupted_write() -> None:
    try:
        raise KeyboardInterrupt
    finally:
        try:
            raise ConnectionResetError("closed by Py4J")
        except ConnectionError as error:
            raise Py4JNetworkError("Error while sending") from error
