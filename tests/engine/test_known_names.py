"""Columns are built without asking Java what the names of PySpark's classes mean."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.java_gateway import GatewayClient
from pyspark.sql import functions as F

from tests.folder import Folder

pytestmark = pytest.mark.spark


def test_names_are_asked_for_once(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second query like another asks for no class and no method, and tells no line of the program."""
    frame = folder.open().engine.spark.range(1)

    def build() -> Any:
        return frame.select(F.col("id").cast("string"), F.coalesce(F.lit(1), F.col("id")))

    build()
    asked: list[str] = []
    send = GatewayClient.send_command

    def listen(self: GatewayClient, command: str, *rest: Any, **more: Any) -> Any:
        asked.append(command)
        return send(self, command, *rest, **more)

    monkeypatch.setattr(GatewayClient, "send_command", listen)
    build()
    assert asked
    assert not [command for command in asked if command.startswith("r\n")]
    assert not [command for command in asked if "PySparkCurrentOrigin" in command]
