"""One project with catalogs of several kinds: each pipeline writes into its own, and into no other."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.lakes import made
from tests.folder import Folder

SHORT = ["hadoop", "rest"]
ALL = ["hadoop", "rest", "s3tables", "jdbc", "hive", "nessie", "glue", "sqlite-gcs", "sqlite-azure"]


@pytest.mark.spark
@pytest.mark.server
@pytest.mark.parametrize("kinds", [SHORT, pytest.param(ALL, marks=pytest.mark.soak)], ids=["short", "all"])
def test_each_pipeline_has_its_own_catalog(
    kinds: list[str], request: pytest.FixtureRequest, tmp_path: Path, spark_running: None
) -> None:
    """The same table in each, with other rows; the embedded one beside them."""
    connections: dict[str, Any] = {}
    pipelines = {"own": Folder.files_pipeline("landing/own.csv", table="shop.works")}
    with ExitStack() as stack:
        for kind in kinds:
            name = kind.replace("-", "_")
            project = stack.enter_context(made(kind, request, tmp_path / name)).project
            connections[name] = dict(project["catalog"])
            if "store" in project:
                connections[f"store_of_{name}"] = project["store"]
                connections[name]["store"] = f"store_of_{name}"
            keys: dict[str, Any] = {} if kind == "hadoop" else {"mode": "upsert", "key": ["id"]}
            pipelines[name] = Folder.files_pipeline(
                f"landing/{name}.csv", table="shop.works", catalog=name, **keys
            )
        folder = Folder(tmp_path / "project", connections=connections, pipelines=pipelines)
        for name in pipelines:
            folder.write_csv(f"landing/{name}.csv", ["id", "kind"], [(1, name), (2, name)])
        report = folder.open().run_all()
        assert {result.pipeline: result.status for result in report.pipelines} == dict.fromkeys(
            pipelines, "succeeded"
        )
        spark = folder.open().engine.spark
        for name in pipelines:
            catalog = "lake" if name == "own" else name
            rows = spark.sql(f"SELECT id, kind FROM {catalog}.shop.works ORDER BY id").collect()
            assert [tuple(row) for row in rows] == [(1, name), (2, name)]
