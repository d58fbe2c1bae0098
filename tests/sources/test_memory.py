"""However much a source sends, the process that fetches it stays small, and so does its Java."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.folder import SPARK, Folder
from tests.needs import missing
from tests.servers.postgres import Database
from tests.sources import oai_server, rest_server
from tests.sources.oai_server import Feed, Record, moment, serving

pytestmark = [pytest.mark.spark, pytest.mark.process]

ROOT = Path(__file__).parents[2]
MOST = 450 * 2**20
"""Bytes that a process may take at most; without any rows it takes about 200 MB."""
JAVA_MOST = 850 * 2**20
"""The same of its Java, which takes 450 to 650 MB. Its heap is small: rows that are held there end it, rows
that are held elsewhere show here."""
SMALL = SPARK | {"driver_memory": "512m"}


def measured(folder: Folder, *pipelines: str) -> list[int]:
    """Run pipelines in a process of their own, see that it stayed small, and return how much was inserted."""
    folder.document["spark"] = SMALL
    folder.save()
    command = [
        sys.executable,
        "-m",
        "tests.sources.measured_run",
        str(folder.path),
        *(pipelines or ["sales"]),
    ]
    if not Path("/proc/self/status").exists():
        missing("/proc/self/status", "Linux tells there how much memory a process took")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    print(found)  # where it fails, pytest shows it
    assert found["python"] < MOST
    assert found["java"] < JAVA_MOST
    inserted: list[int] = found["inserted"]
    return inserted


@pytest.mark.parametrize(
    ("count", "size", "split_at"),
    [(12_000, 25_000, 3_500), pytest.param(350_000, 2_500, 100_000, marks=pytest.mark.soak)],
)
def test_a_window_with_many_records(
    make_folder: Callable[..., Folder], count: int, size: int, split_at: int
) -> None:
    """Too many for one step: the window is halved until its parts fit, and each record is loaded once.

    Together they are more than a process may take.
    """
    start = moment("12:00")
    content = "x" * size
    records = [Record(f"r{n}", start + timedelta(seconds=n * 900 // count), content) for n in range(count)]
    with serving(Feed(moment("12:15"), records, page=count // 70)) as feed:
        source = {
            "type": "oai_pmh",
            "url": feed.url,
            "metadata_prefix": "marc",
            "window": {"every": "15m", "start": "2026-01-01T12:00:00Z", "split_at": split_at},
        }
        keys = {"mode": "upsert", "key": ["id"], "order_by": "last_modified"}
        folder = make_folder(pipelines={"sales": {"source": source, "table": "shop.sales", **keys}})
        inserted = measured(folder)
    assert inserted == [count]
    assert len(folder.rows("shop.sales", "id")) == count


@pytest.mark.soak
def test_a_function_that_yields_a_gigabyte(make_folder: Callable[..., Folder]) -> None:
    source = {"type": "python", "function": "sources/much.py:much"}
    pipeline = {"source": source, "table": "shop.sales", "mode": "append"}
    folder = make_folder(pipelines={"sales": pipeline})
    folder.write(
        "sources/much.py",
        """
import pyarrow as pa
import esker

@esker.source
def much():
    for part in range(20):
        ids = pa.array(range(part * 50_000, part * 50_000 + 50_000))
        yield pa.table({"id": ids, "text": pa.array([f"{part} " * 250] * 50_000)})
    for number in range(50_000):
        yield {"id": 1_000_000 + number, "text": "y" * 1_000}
""",
    )
    inserted = measured(folder)
    assert inserted == [1_050_000]


@pytest.mark.parametrize("count", [10_000, pytest.param(50_000, marks=pytest.mark.soak)])
def test_an_api_with_many_pages(make_folder: Callable[..., Folder], count: int) -> None:
    """30 kB a record: pages go to the disk as they come, several at a time."""
    size, text = 100, "x" * 30_000

    def page(handler: Any) -> None:
        first = int(parse_qs(urlsplit(handler.path).query)["offset"][0])
        records = ", ".join(f'{{"id": {n}, "text": "{text}"}}' for n in range(first, first + size))
        oai_server.send(handler, 200, f'{{"total": {count}, "items": [{records}]}}'.encode())

    with rest_server.serving(rest_server.Api(always=[(lambda asked: True, page)])) as api:
        source = {
            "type": "http",
            "url": api.url,
            "path": "/offset",
            "data_selector": "items",
            "paginator": {"type": "offset", "limit": size, "total_path": "total"},
            "parallel": 4,
        }
        folder = make_folder(pipelines={"sales": {"source": source, "table": "shop.sales"}})
        inserted = measured(folder)
    assert inserted == [count]


@pytest.mark.server
@pytest.mark.parametrize(
    ("count", "width", "source"),
    [
        (20_000, 32_000, {}),
        pytest.param(60_000, 32_000, {}, marks=pytest.mark.soak),
        # All of them in one second, which cannot be halved.
        pytest.param(300_000, 2_000, {"window": {"every": "1d"}, "cursor": "at"}, marks=pytest.mark.soak),
    ],
)
def test_a_table_that_does_not_fit(
    make_folder: Callable[..., Folder],
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    width: int,
    source: dict[str, Any],
) -> None:
    """It is read by one query: neither Java's heap nor this process could hold its rows."""
    monkeypatch.setenv("SHOP_PASSWORD", database.password)
    with database.connect() as connection:
        connection.execute(
            "CREATE TABLE orders AS SELECT i AS id, date_trunc('day', now()) - interval '2 days' AS at, "
            f"repeat(md5(i::text), {width // 32}) AS name FROM generate_series(1, {count}) i".encode()
        )
    declared = {
        "type": "jdbc",
        "url": f"jdbc:postgresql://{database.address}",
        "user": database.user,
        "password": "${SHOP_PASSWORD}",
        "table": "orders",
        "fetch_size": 100,
        **source,
    }
    folder = make_folder(pipelines={"sales": {"source": declared, "table": "shop.sales"}})
    inserted = measured(folder)
    assert inserted == [count]


def test_files_and_what_is_made_of_their_table(make_folder: Callable[..., Folder]) -> None:
    """600 MB go through Java, from files and then from the table. Its heap is smaller."""
    folder = make_folder()
    line = '{"id": %s, "text": "' + "x" * WIDTH + '"}\n'
    with folder.write("landing/much.jsonl", "").open("w") as file:
        file.writelines(line % number for number in range(ROWS))
    source = {"type": "files", "path": "landing/*.jsonl", "format": "jsonl"}
    folder.document["pipelines"] = {
        "sales": {"source": source, "table": "shop.sales"},
        "copied": {
            "source": {"type": "table", "table": "shop.sales", "read": "appended"},
            "table": "shop.copied",
        },
    }
    assert measured(folder, "sales", "copied") == [ROWS, ROWS]


ROWS, WIDTH = 300_000, 2_000
DLT = """
import dlt

@dlt.resource
def much():
    for part in range(300):
        yield [{"id": part * 1000 + number, "text": f"{part} " * 500} for number in range(1000)]
"""


@pytest.mark.parametrize("mode", ["append", pytest.param("upsert", marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("files", marks=pytest.mark.soak),
        pytest.param("bucket", marks=[pytest.mark.soak, pytest.mark.server]),
        pytest.param("table", marks=pytest.mark.soak),
        pytest.param("query", marks=pytest.mark.soak),
        "dlt",
    ],
)
def test_other_kinds_that_send_600_megabytes(
    make_folder: Callable[..., Folder], request: pytest.FixtureRequest, kind: str, mode: str
) -> None:
    """The rows of a table, of files or of a query go through Spark; those of dlt through the disk."""
    folder = make_folder()
    line = '{"id": %s, "text": "' + "x" * WIDTH + '"}\n'
    match kind:
        case "files":
            with folder.write("landing/much.jsonl", "").open("w") as file:
                file.writelines(line % number for number in range(ROWS))
            source: dict[str, Any] = {"type": "files", "path": "landing/*.jsonl", "format": "jsonl"}
        case "bucket":
            server = request.getfixturevalue("seaweedfs")
            folder.document["connections"] = {"landing": server.store()}
            address = server.new_prefix()
            server.put(f"{address}/much.jsonl", "".join(line % number for number in range(ROWS)).encode())
            source = {
                "type": "files",
                "path": f"{address}/*.jsonl",
                "format": "jsonl",
                "connection": "landing",
            }
        case "table" | "query":
            engine = folder.open().engine
            engine.open_catalog("lake")
            engine.spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
            engine.spark.sql(
                "CREATE TABLE lake.raw.much USING iceberg AS "
                f"SELECT id, repeat('x', {WIDTH}) AS text FROM range({ROWS})"
            )
            source = {"type": "table", "table": "raw.much", "read": "appended"}
            if kind == "query":
                source = {"type": "query", "sql": "SELECT * FROM raw.much"}
        case _:
            folder.write("sources/much.py", DLT)
            source = {"type": "dlt", "resource": "sources/much.py:much"}
    keys = {"key": ["id"]} if mode == "upsert" else {}
    folder.document["pipelines"]["sales"] = {"source": source, "table": "shop.sales", "mode": mode, **keys}
    folder.save()
    inserted = measured(folder)
    assert inserted == [ROWS]
