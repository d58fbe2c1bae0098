"""A database that takes connections and says nothing."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from esker.errors import SourceUnavailable
from tests.folder import Folder

pytestmark = pytest.mark.spark


@pytest.fixture
def mute() -> Iterator[int]:
    """A port where the system takes connections, and nobody answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_silent_server(make_folder: Callable[..., Folder], mute: int, kind: str) -> None:
    """A clear error, after as many tries as for one that is down, none longer than `timeout`."""
    url = f"jdbc:{kind}://127.0.0.1:{mute}/shop"
    source = {"type": "jdbc", "url": url, "user": "etl", "table": "orders", "timeout": "1s"}
    folder = make_folder(pipelines={"sales": {"source": source, "table": "shop.sales"}})
    started = time.monotonic()
    with pytest.raises(SourceUnavailable, match="cannot be read") as caught:
        folder.run()
    assert "asked 4 times" in caught.value.reason
    assert caught.value.exit_status == 4
    assert 4 <= time.monotonic() - started < 30
