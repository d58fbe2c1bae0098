"""Files are put together by runs that have done their work: what goes wrong in it stays there."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pytest
from fastavro.read import SchemaResolutionError

from esker.engine.iceberg.commit import SwapFailed
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import StoreUnreachable
from esker.ledger import upkeep

FAILURES = [
    pa.ArrowInvalid("not a Parquet file"),
    SchemaResolutionError("not a manifest"),
    SwapFailed("CommitFailedException", "moved on"),
    StoreUnreachable("s3://lake", "timed out"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_no_run_fails_by_it(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    def fail(*_: Any) -> Any:
        raise failure

    monkeypatch.setattr(upkeep, "Attempt", fail)
    upkeep.put_together(cast(Engine, None), TableId("lake", "shop.sales__files"))


def test_who_stops_a_run_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(upkeep, "Attempt", stop)
    with pytest.raises(KeyboardInterrupt):
        upkeep.put_together(cast(Engine, None), TableId("lake", "shop.sales__files"))
