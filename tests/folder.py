"""A project folder for tests: written from plain values, run in this process, looked at afterwards."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

import esker
from esker.events import Listener, silent
from esker.pipeline.api import OpenProject
from esker.pipeline.result import RunResult

_JAVA = "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=400m"
"""Fewer threads. Java's code cache is small; when it is full, Java compiles and forgets without end."""
SPARK: dict[str, Any] = {
    "master": "local[2]",
    "driver_memory": "2g",
    "conf": {
        "spark.sql.shuffle.partitions": "2",
        # For rows that fit one hand: each stage as a job of its own, to look at its size, takes longer.
        "spark.sql.adaptive.enabled": "false",
        # For short work: less compiling.
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 {_JAVA}",
    },
}
LASTING_SPARK: dict[str, Any] = SPARK | {"conf": SPARK["conf"] | {"spark.driver.extraJavaOptions": _JAVA}}
"""The Spark of a test process works for long: Java compiles well what it runs again and again."""


class Folder:
    """A project in a temporary folder, with one pipeline `sales` unless told otherwise."""

    def __init__(self, path: Path, **keys: Any) -> None:
        self.path = path
        self.document: dict[str, Any] = {
            "project": "shop",
            "spark": SPARK,
            "pipelines": {"sales": self.files_pipeline()},
            **keys,
        }
        self.save()

    @staticmethod
    def files_pipeline(
        path: str = "landing/*.csv", format: str = "csv", table: str = "shop.sales", **keys: Any
    ) -> dict[str, Any]:
        source = {"type": "files", "path": path, "format": format, **keys.pop("source", {})}
        return {"source": source, "table": table, **keys}

    def save(self) -> None:
        """Write esker.yml from the document."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "landing").mkdir(exist_ok=True)
        with (self.path / "esker.yml").open("w") as stream:
            YAML(typ="rt").dump(self.document, stream)  # keeps the order of keys

    def change(self, pipeline: str = "sales", /, **keys: Any) -> None:
        """Change keys of a pipeline and write esker.yml."""
        self.document["pipelines"][pipeline].update(keys)
        self.save()

    def write(self, name: str, text: str) -> Path:
        """Write a text file below the folder."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def write_csv(self, name: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
        """Write a CSV file below the folder."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)
        return target

    def write_jsonl(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        """Write a file of JSON lines below the folder."""
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def lose_state(self) -> None:
        """Remove the state database."""
        for path in self.path.glob(".esker/state.db*"):
            path.unlink()

    def open(self, env: str | None = None) -> OpenProject:
        """Open the project as it is on the disk now."""
        return esker.open(self.path, env)

    def run(self, pipeline: str = "sales", listen: Listener = silent) -> RunResult:
        """Run a pipeline in this process; raises what the run raises."""
        return self.open().run(pipeline, listen)

    def rows(self, table: str = "shop.sales", *columns: str) -> list[tuple[Any, ...]]:
        """Return a table's rows, sorted, as tuples."""
        frame = self.open().table(table)
        if columns:
            frame = frame.select(*columns)
        return sorted((tuple(row) for row in frame.collect()), key=repr)
