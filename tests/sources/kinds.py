"""Sources of every kind that can be filled by a test, for what must be true of all."""

from __future__ import annotations

import json
import sqlite3
from abc import ABC, abstractmethod
from contextlib import ExitStack, closing
from importlib.metadata import entry_points
from typing import Any, ClassVar

from esker.project.source_kinds import GROUP
from tests.folder import Folder
from tests.servers.seaweedfs import SeaweedFS
from tests.sources.oai_server import Feed, moment, serving
from tests.sources.rest_server import Api
from tests.sources.rest_server import serving as rest_serving

Row = dict[str, Any]


class Kind(ABC):
    """A source that a test fills part by part. Rows have a text `id` and a text `content`."""

    can_drift = True
    """It may send columns that it did not send before."""
    has_steps = True
    """Its parts are batches, one after the other; else all of it is one batch in each run."""
    can_append = True
    """It sends what is new and nothing else, so that rows need no key."""
    keys: ClassVar[dict[str, Any]] = {}
    """What its pipeline says beside."""

    def __init__(self, folder: Folder, server: SeaweedFS | None = None) -> None:
        self.folder, self.server = folder, server
        self.parts = 0
        self.opened = ExitStack()
        folder.document["pipelines"]["sales"] = {
            "source": self.source(),
            "table": "shop.sales",
            "mode": "upsert",
            "key": ["id"],
            **self.keys,
        }
        folder.save()

    @abstractmethod
    def source(self) -> dict[str, Any]:
        """Return its declaration: one part is one batch."""

    @abstractmethod
    def put(self, rows: list[Row]) -> None:
        """Put rows into the source, as a further part of it."""

    def append(self) -> None:
        """Load by appending: a part that is sent again stands in the table twice then."""
        declared = {"source": self.folder.document["pipelines"]["sales"]["source"], "table": "shop.sales"}
        self.folder.document["pipelines"]["sales"] = {**declared, "mode": "append"}
        self.folder.save()

    def prepare(self) -> None:  # noqa: B027
        """Make what must be there although it holds nothing."""

    def close(self) -> None:
        self.opened.close()


class Files(Kind):
    def source(self) -> dict[str, Any]:
        (self.folder.path / "landing").mkdir(exist_ok=True)
        return {"type": "files", "path": "landing/*.jsonl", "format": "jsonl", "max_files": 1}

    def put(self, rows: list[Row]) -> None:
        self.parts += 1
        self.folder.write_jsonl(f"landing/{self.parts}.jsonl", rows)


class Bucket(Kind):
    """Files in an S3 store."""

    def source(self) -> dict[str, Any]:
        server = self.server
        assert server is not None
        self.folder.document["connections"] = {"landing": server.store()}
        self.address = server.new_prefix()
        path = f"{self.address}/*.jsonl"
        return {
            "type": "files",
            "path": path,
            "format": "jsonl",
            "max_files": 1,
            "connection": "landing",
        }

    def put(self, rows: list[Row]) -> None:
        self.parts += 1
        assert self.server is not None
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        self.server.put(f"{self.address}/{self.parts}.jsonl", lines.encode())


class Http(Kind):
    has_steps = False

    def source(self) -> dict[str, Any]:
        self.api = self.opened.enter_context(rest_serving(Api()))
        paginator = {"type": "offset", "total_path": "total"}
        path = {"path": "/offset", "data_selector": "items", "paginator": paginator}
        return {"type": "http", "url": self.api.url, **path}

    def put(self, rows: list[Row]) -> None:
        self.api.records += rows


class Jdbc(Kind):
    def source(self) -> dict[str, Any]:
        self.columns = {"part", "id", "content"}
        self.execute("CREATE TABLE rows (part INTEGER, id TEXT, content TEXT)")
        cursor = {"cursor": "part", "range": "open", "chunks": {"size": 1}, "connections": 1}
        cursor["cursor_order"] = "commit"  # one writer at a time
        return {"type": "jdbc", "url": "jdbc:sqlite:rows.db", "table": "rows", **cursor}

    def put(self, rows: list[Row]) -> None:
        self.parts += 1
        for row in rows:
            for name in row.keys() - self.columns:
                self.execute(f"ALTER TABLE rows ADD COLUMN {name} TEXT")
                self.columns.add(name)
            names = ", ".join(("part", *row))
            marks = ", ".join("?" for _ in range(len(row) + 1))
            self.execute(f"INSERT INTO rows ({names}) VALUES ({marks})", self.parts, *row.values())

    def execute(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.folder.path / "rows.db")) as connection, connection:
            connection.execute(statement, values)


class OaiPmh(Kind):
    can_drift = False
    keys: ClassVar[dict[str, Any]] = {"order_by": "last_modified"}

    def source(self) -> dict[str, Any]:
        self.feed = self.opened.enter_context(serving(Feed(moment("12:00"))))
        window = {"every": "15m", "start": "2026-01-01T12:00:00Z", "max_windows": 1}
        return {"type": "oai_pmh", "url": self.feed.url, "metadata_prefix": "marc", "window": window}

    def put(self, rows: list[Row]) -> None:
        for row in rows:
            self.feed.put(row["id"], self._clock(1), row["content"])
        self.parts += 1
        self.feed.now = moment(self._clock(0))

    def _clock(self, minute: int) -> str:
        return f"{12 + self.parts // 4}:{self.parts % 4 * 15 + minute:02}"


class Python(Kind):
    def source(self) -> dict[str, Any]:
        self.folder.write(
            "sources/parts.py",
            """
import json
from pathlib import Path
import esker

@esker.source
def parts(since):
    folder = Path(__file__).parents[1] / "parts"
    for number in range((since or 0) + 1, len(list(folder.glob("*"))) + 1):
        yield json.loads((folder / str(number)).read_text())
        yield esker.reached(number)
""",
        )
        (self.folder.path / "parts").mkdir()
        return {"type": "python", "function": "sources/parts.py:parts", "rows_per_batch": 1}

    def put(self, rows: list[Row]) -> None:
        self.parts += 1
        self.folder.write(f"parts/{self.parts}", json.dumps(rows))


class Dlt(Kind):
    def source(self) -> dict[str, Any]:
        self.folder.write(
            "sources/parts.py",
            """
import json
from pathlib import Path
import dlt

@dlt.resource(primary_key="id")
def parts(part=dlt.sources.incremental("part", initial_value=0, row_order="asc")):
    folder = Path(__file__).parents[1] / "parts"
    for number in range(part.last_value, len(list(folder.glob("*"))) + 1):
        if number:
            yield [row | {"part": number} for row in json.loads((folder / str(number)).read_text())]
""",
        )
        (self.folder.path / "parts").mkdir()
        return {"type": "dlt", "resource": "sources/parts.py:parts", "rows_per_batch": 1}

    def put(self, rows: list[Row]) -> None:
        self.parts += 1
        self.folder.write(f"parts/{self.parts}", json.dumps(rows))


class Table(Kind):
    has_steps = False

    def source(self) -> dict[str, Any]:
        self.columns = ["id", "content"]
        return {"type": "table", "table": "raw.rows", "read": "appended"}

    def put(self, rows: list[Row]) -> None:
        self._make()
        for row in rows:
            for name in row.keys() - set(self.columns):
                self._sql(f"ALTER TABLE lake.raw.rows ADD COLUMN {name} STRING")
                self.columns.append(name)
            values = ", ".join(f"'{row[name]}'" if name in row else "NULL" for name in self.columns)
            self._sql(f"INSERT INTO lake.raw.rows VALUES ({values})")

    def prepare(self) -> None:
        self._make()

    def _make(self) -> None:
        self.folder.open().engine.open_catalog("lake")
        self._sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
        self._sql("CREATE TABLE IF NOT EXISTS lake.raw.rows (id STRING, content STRING) USING iceberg")

    def _sql(self, statement: str) -> None:
        self.folder.open().engine.spark.sql(statement)


class Query(Table):
    can_append = False

    def source(self) -> dict[str, Any]:
        super().source()
        return {"type": "query", "sql": "SELECT * FROM raw.rows"}


class Tides(Kind):
    """A kind that another package offers, as docs/how-to/write-a-source.md has it."""

    def source(self) -> dict[str, Any]:
        (self.folder.path / "heights").mkdir()
        return {"type": "tides", "folder": "heights"}

    def put(self, rows: list[Row]) -> None:
        self.parts += 1
        self.folder.write_jsonl(f"heights/2026-01-{self.parts:02}.jsonl", rows)


KINDS: dict[str, type[Kind]] = {
    "dlt": Dlt,
    "files": Files,
    "bucket": Bucket,
    "http": Http,
    "jdbc": Jdbc,
    "oai_pmh": OaiPmh,
    "python": Python,
    "query": Query,
    "table": Table,
}
PLUGGED_IN: dict[str, type[Kind]] = {"tides": Tides}
"""Kinds of other packages: found when Esker starts, so that a process has them or has them not."""
KINDS |= {point.name: PLUGGED_IN[point.name] for point in entry_points(group=GROUP)}
