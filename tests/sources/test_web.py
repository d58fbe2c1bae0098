"""Ask web servers again, ever later."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest
import stamina

from esker.errors import SourceUnavailable
from esker.sources.web import Client
from tests.sources.rest_server import Api, serving, status


def test_waits_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """From half a second, each twice as long as the one before and up to a second more; none beyond 30."""
    waits: list[float] = []
    sleep, asking = time.sleep, threading.get_ident()

    def noted(seconds: float) -> None:
        # Other threads of a test process sleep too: Spark's, or those of a server.
        if threading.get_ident() == asking:
            waits.append(seconds)
        else:
            sleep(seconds)

    monkeypatch.setattr(time, "sleep", noted)
    with serving(Api(always=[(lambda asked: True, status(503))])) as api, stamina.set_testing(False):
        client = Client(timedelta(seconds=5), retries=8)
        with pytest.raises(SourceUnavailable, match="cannot be read") as caught:
            client.get(api.url, {}, lambda answer: answer)
        client.close()
        asked = len(api.asked)
    assert "asked 9 times" in caught.value.reason
    assert asked == 9
    least = [min(30, 0.5 * 2**number) for number in range(8)]
    assert [low <= wait <= min(30, low + 1) for low, wait in zip(least, waits, strict=True)] == [True] * 8
