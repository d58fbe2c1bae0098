"""What a failed call into the JVM becomes."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError

from esker.engine.failures import explained
from esker.errors import SparkFailed

_LOG = Path("spark.log")


def test_lost_connection_says_that_java_ended() -> None:
    with pytest.raises(SparkFailed, match="cannot write"), explained("cannot write", _LOG):
        raise Py4JNetworkError("Answer from Java side is empty")


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
