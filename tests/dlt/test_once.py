"""Loads of dlt pipelines are in the tables once, whatever happens on the way, and dlt finds its state again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dlt
import pytest
from dlt.pipeline.exceptions import PipelineStepFailed

from esker.dlt.loading import PackageLoading
from esker.errors import DltSchemaConflict, LoadLeftHalfway
from tests.dlt.conftest import Shop
from tests.dlt.killed_load import pipeline, resources

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]


def check_both_loads(shop: Shop) -> None:
    events = [(n, load) for load in (1, 2) for n in range(3)]
    assert sorted(shop.rows("events", "id", "load")) == sorted(events)
    lines = [f"{load}-{n}" for load in (1, 2) for n in range(3)]
    assert sorted(row[0] for row in shop.rows("events__lines", "sku")) == sorted(lines)
    assert shop.rows("orders", "id", "load") == [(0, 2), (1, 2), (2, 2)]
    assert [row[0] for row in shop.rows("orders__lines", "sku")] == ["2-0", "2-1", "2-2"]
    assert len(shop.rows("_dlt_loads")) == 2


@pytest.mark.process
@pytest.mark.parametrize(
    ("point", "count"),
    [
        ("after", 3),
        *(pytest.param("after", count, marks=pytest.mark.soak) for count in (1, 2, 4, 5)),
        *(pytest.param("before", count, marks=pytest.mark.soak) for count in (1, 2, 3, 4, 5)),
    ],
)
def test_a_killed_load_goes_on(shop: Shop, point: str, count: int) -> None:
    """Killed between tables: the package is completed by the next run, and no row comes twice."""
    pipeline(shop.folder.path, shop.work).run(resources(1))
    command = [sys.executable, "-m", "tests.dlt.killed_load"]
    places = [str(shop.folder.path), str(shop.work), point, str(count)]
    done = subprocess.run(
        [*command, *places],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    assert len(shop.rows("_dlt_loads")) == 1
    pipeline(shop.folder.path, shop.work).run()
    check_both_loads(shop)


def test_a_load_that_was_left_half_way(shop: Shop) -> None:
    """Where the working directory is lost before a load was completed, the next one does not go on blindly."""
    with (
        patch.object(PackageLoading, "_load_loads", side_effect=ConnectionError("the catalog went away")),
        pytest.raises(PipelineStepFailed) as failed,
    ):
        pipeline(shop.folder.path, shop.work).run(resources(1))
    load_id = failed.value.load_id
    shutil.rmtree(shop.work)
    with pytest.raises(PipelineStepFailed) as refused:
        pipeline(shop.folder.path, shop.work).run(resources(2))
    assert isinstance(refused.value.exception, LoadLeftHalfway)
    assert load_id in refused.value.exception.message
    pipeline(shop.folder.path, shop.work, give_up=(load_id,)).run()
    check_orders = shop.rows("orders", "id", "load")
    assert check_orders == [(0, 2), (1, 2), (2, 2)]
    assert len(shop.rows("events")) == 6


def growing(upto: int) -> Any:
    @dlt.resource(primary_key="id")
    def orders(at: Any = dlt.sources.incremental("at", initial_value=0)) -> Any:
        yield [{"id": n, "at": n} for n in range(1, upto + 1) if n >= at.last_value]

    return orders


def test_state_is_found_on_another_machine(shop: Shop, tmp_path: Path) -> None:
    """Nothing is left but the lake: the next load brings what is new, and knows the schema."""
    shop.pipeline().run(growing(3))
    other = shop.pipeline(tmp_path / "elsewhere")
    other.run(growing(5))
    assert shop.rows("orders", "id") == [(1,), (2,), (3,), (4,), (5,)]
    assert other.default_schema_name == "shop"
    again = shop.pipeline(tmp_path / "third")
    again.sync_destination()
    assert "orders" in again.default_schema.tables
    assert again.state["sources"]["shop"]["resources"]["orders"]["incremental"]["at"]["last_value"] == 5


def test_a_schema_that_does_not_fit_loads_nothing(shop: Shop) -> None:
    """All tables are looked at before the first is loaded."""
    opened = shop.folder.open()
    opened.engine.open_catalog("lake")
    opened.engine.spark.sql("CREATE NAMESPACE lake.shop")
    opened.engine.spark.sql("CREATE TABLE lake.shop.orders (id DATE, amount DECIMAL(4,2)) USING iceberg")
    rows = [{"id": 1, "amount": 1.5}]
    with pytest.raises(PipelineStepFailed) as failed:
        shop.run([dlt.resource([{"id": 1}], name="events"), dlt.resource(rows, name="orders")])
    refused = failed.value.exception
    assert isinstance(refused, DltSchemaConflict)
    assert 'column "id" is date in the table and bigint in the source' in refused.reason
    assert 'column "amount" is decimal(4,2) in the table and double in the source' in refused.reason
    assert [row.tableName for row in opened.engine.spark.sql("SHOW TABLES IN lake.shop").collect()] == [
        "orders"
    ]
