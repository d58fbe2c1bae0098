"""A table loaded by key, for tests: rows are handed over, table and change log are looked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from esker.events import Event, Listener, Reached, Step, silent
from esker.ledger.change_log import CHANGESET, OP
from esker.pipeline.result import RunResult
from tests.folder import Folder

LANES = ("small", "large")
WORKS = "lake.shop.works"
CHANGES = "lake.shop.works__changes"
QUARANTINE = "lake.shop.works__quarantine"

Row = dict[str, Any]
both_lanes = pytest.mark.parametrize("lane", LANES)
large_in_soak = pytest.mark.parametrize("lane", ["small", pytest.param("large", marks=pytest.mark.soak)])
"""For what the lanes have in common but for their cost: `make test` tries the cheaper one."""


class Works:
    """Table `shop.works` with the key `id`, loaded by pipeline `works`."""

    def __init__(self, path: Path, project: Mapping[str, Any] | None = None, **keys: Any) -> None:
        pipeline = Folder.files_pipeline(table="shop.works", **{"mode": "upsert", "key": ["id"], **keys})
        self.folder = Folder(path, pipelines={"works": pipeline}, **(project or {}))
        self.project = self.folder.open()

    def change(self, **keys: Any) -> None:
        """Change keys of the pipeline."""
        self.folder.change("works", **keys)
        self.project = self.folder.open()

    def load(
        self, data: Iterable[Mapping[str, Any]] | pa.Table | DataFrame, listen: Listener = silent
    ) -> RunResult:
        """Load rows in this process; raises what the run raises."""
        return self.project.load("works", data, listen)

    def sql(self, statement: str) -> list[Any]:
        """Do something that Esker does not know of."""
        return self.project.engine.spark.sql(statement).collect()

    def read(self, table: str = WORKS) -> list[Row]:
        """Return a table's rows, without Esker's own columns."""
        return [
            {name: value for name, value in row.asDict(recursive=True).items() if name != "_esker_hash"}
            for row in self.sql(f"SELECT * FROM {table}")
        ]

    def rows(self) -> dict[Any, Row]:
        """Return the table's rows by id; each id stands there once."""
        read = self.read()
        found = {row["id"]: row for row in read}
        assert len(found) == len(read), f"a key stands twice in {read}"
        return found

    def log(self) -> list[Row]:
        """Return the change log, by changeset and place in the batch."""
        return self.read(f"{CHANGES} ORDER BY {CHANGESET}, _esker_row")

    def ops(self, changeset: int) -> dict[Any, str]:
        """Return what the log says of one changeset, by id."""
        return {row["id"]: row[OP] for row in self.log() if row[CHANGESET] == changeset}

    def properties(self, table: str = WORKS) -> dict[str, str]:
        return {row["key"]: row["value"] for row in self.sql(f"SHOW TBLPROPERTIES {table}")}

    def outbox(self) -> list[Any]:
        """Return the entries that are on their way to the change log."""
        found: list[Any] = json.loads(self.properties().get("esker.outbox", "[]"))
        return found

    def snapshots(self, table: str = WORKS) -> list[int]:
        rows = self.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")
        return [row.snapshot_id for row in rows]

    def replayed(self) -> dict[Any, Row]:
        """Return the table as its change log alone tells it."""
        table: dict[Any, Row] = {}
        for change in self.log():
            content = {name: value for name, value in change.items() if not name.startswith("_esker_")}
            if change[OP] == "delete" and content.get("deleted") is not True:
                del table[change["id"]]
            else:
                table[change["id"]] = content
        return table


def at(step: Step, act: Callable[[], object], count: int = 1) -> Listener:
    """Do something when a run reaches a step for the `count`-th time."""
    seen = 0

    def listen(event: Event) -> None:
        nonlocal seen
        if isinstance(event, Reached) and event.step is step:
            seen += 1
            if seen == count:
                act()

    return listen


Make = Callable[..., Works]
"""Makes a table in a project of its own, with keys of its pipeline."""
