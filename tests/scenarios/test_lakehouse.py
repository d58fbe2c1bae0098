"""The example with sales, seen through Trino: SeaweedFS has the files and the catalog."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from examples.lakehouse import run as example
from pyarrow import fs

import esker
from esker.pipeline.export import export_reader
from esker.project import load_project
from tests.folder import SPARK
from tests.needs import missing
from tests.readers import duckdb, pyiceberg, spark
from tests.readers.seen import agree
from tests.readers.trino import TrinoReader
from tests.servers.seaweedfs import KEY, SeaweedFS, program
from tests.servers.trino import Trino, running_trino

pytestmark = [pytest.mark.spark, pytest.mark.server]
SALES = "iceberg.lakehouse.sales"
DDL = f"""
CREATE TABLE IF NOT EXISTS {SALES} (
    order_id       VARCHAR       NOT NULL,
    customer_id    VARCHAR       NOT NULL,
    amount         DECIMAL(12,2) NOT NULL,
    country        VARCHAR,
    ingestion_date DATE          NOT NULL
)
WITH (format = 'PARQUET', partitioning = ARRAY['ingestion_date'])
"""
DAYS = [example.FIRST + timedelta(days=number) for number in range(6)]


@dataclass
class Lakehouse:
    """The example's project, and Trino beside it."""

    folder: Path
    trino: Trino
    server: SeaweedFS
    warehouse: str

    def sql(self, statement: str) -> list[list[Any]]:
        """Ask Trino."""
        return self.trino.rows(statement)

    def deliver(self, number: int, *more: str) -> None:
        """Let a day arrive, with more columns, and load it."""
        example.deliver(self.folder, number, header=(*example.HEADER, *more))
        assert example.load(self.folder) == example.ORDERS

    def files(self) -> dict[str, int]:
        """Return the data files that Trino sees, by path: how many rows they have."""
        rows = self.sql('SELECT file_path, record_count FROM iceberg.lakehouse."sales$files"')
        return {str(path): int(count) for path, count in rows}

    def columns(self) -> list[tuple[str, str, bool]]:
        """Return name, type and whether values are required."""
        rows = self.sql(
            "SELECT column_name, data_type, is_nullable = 'NO' FROM iceberg.information_schema.columns "
            "WHERE table_schema = 'lakehouse' AND table_name = 'sales' ORDER BY ordinal_position"
        )
        return [(name, kind, required) for name, kind, required in rows]

    def snapshots(self) -> list[tuple[int, datetime]]:
        rows = self.sql(
            'SELECT snapshot_id, committed_at FROM iceberg.lakehouse."sales$snapshots" ORDER BY committed_at'
        )
        return [(snapshot, at) for snapshot, at in rows]

    def objects(self) -> list[str]:
        """Return the keys of everything that the table has in the store, below its own folder."""
        store = fs.S3FileSystem(
            access_key=KEY,
            secret_key=self.server.secret,
            endpoint_override=self.server.endpoint,
            region="us-east-1",
        )
        [location] = {path.partition("/data/")[0] for path in self.files()}
        home = location.removeprefix("s3://")
        found = store.get_file_info(fs.FileSelector(home, recursive=True))
        return [each.path.removeprefix(f"{home}/") for each in found if each.is_file]

    def edit(self, old: str, new: str) -> None:
        """Change the contract."""
        contract = self.folder / "contracts/sales.odcs.yaml"
        text = contract.read_text()
        assert old in text
        contract.write_text(text.replace(old, new))


@pytest.fixture
def lakehouse(
    tmp_path: Path,
    spark_running: None,
    seaweedfs: SeaweedFS,
    trino: Trino,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Lakehouse]:
    """The example in a warehouse of its own, opened in Trino with what is exported for it."""
    with opened(tmp_path / "lakehouse", seaweedfs, trino, monkeypatch) as found:
        yield found


@contextmanager
def opened(folder: Path, server: SeaweedFS, trino: Trino, patch: pytest.MonkeyPatch) -> Iterator[Lakehouse]:
    """Make the example on a server, and open it in Trino."""
    warehouse = server.new_warehouse()
    places = {"CATALOG_URI": server.uri, "S3_ENDPOINT": server.endpoint, "WAREHOUSE": warehouse}
    for name, value in (server.environment | places).items():
        patch.setenv(name, value)
    example.make_project(folder)
    with (folder / "esker.yml").open("a", encoding="utf-8") as stream:
        stream.write(f"\nspark: {json.dumps(SPARK)}\n")
    exported = export_reader(load_project(folder), "trino")
    assert exported.name == "etc/catalog/iceberg.properties"
    with trino.catalog(exported.text, "iceberg"):
        yield Lakehouse(folder, trino, server, warehouse)


def test_sales(lakehouse: Lakehouse, duckdb_home: Path) -> None:
    """Made, loaded, asked, altered without a file being rewritten, and looked at as it was."""
    deliver, sql = lakehouse.deliver, lakehouse.sql
    example.deliver(lakehouse.folder, 0)
    assert example.apply(lakehouse.folder) == ["create table lakehouse.sales"]
    for _ in range(2):  # whoever comes second finds it there
        assert example.apply(lakehouse.folder) == []
        sql(DDL)
    assert lakehouse.columns() == [
        ("order_id", "varchar", True),
        ("customer_id", "varchar", True),
        ("amount", "decimal(12,2)", True),
        ("country", "varchar", False),
        ("ingestion_date", "date", True),
    ]
    [[made]] = sql(f"SHOW CREATE TABLE {SALES}")
    assert "partitioning = ARRAY['ingestion_date']" in made
    assert "format = 'PARQUET'" in made

    deliver(0)
    deliver(1)
    _check_rows(lakehouse)
    _check_pruning(lakehouse)
    _check_layout(lakehouse)
    two_days, (then, moment) = lakehouse.files(), lakehouse.snapshots()[-1]

    # A new column: no file is rewritten, and rows from before have none.
    example.announce_currency(lakehouse.folder)
    assert example.apply(lakehouse.folder) == ["add to table lakehouse.sales: currency string"]
    assert lakehouse.files() == two_days
    deliver(2, "currency")
    found = sql(f"SELECT ingestion_date, count(currency) FROM {SALES} GROUP BY 1 ORDER BY 1")
    assert found == [[DAYS[0], 0], [DAYS[1], 0], [DAYS[2], example.ORDERS]]

    # As it was, by version and by time.
    for at in (f"VERSION AS OF {then}", f"TIMESTAMP AS OF {_literal(moment)}"):
        assert sql(f"SELECT count(*), min(ingestion_date) FROM {SALES} FOR {at}") == [
            [2 * example.ORDERS, DAYS[0]]
        ]
        with pytest.raises(Exception, match="currency"):
            sql(f"SELECT currency FROM {SALES} FOR {at}")

    _check_evolution(lakehouse, two_days)
    _check_second_partition_field(lakehouse)
    _check_readers(lakehouse, duckdb_home)


def _check_rows(lakehouse: Lakehouse) -> None:
    expected = sorted(
        [
            row["order_id"],
            row["customer_id"],
            Decimal(row["amount"]).quantize(Decimal("0.01")),
            row["country"] or None,
            date.fromisoformat(row["ingestion_date"]),
        ]
        for number in range(2)
        for row in example.sales(number)
    )
    assert lakehouse.sql(f"SELECT * FROM {SALES} ORDER BY order_id") == expected


def _check_pruning(lakehouse: Lakehouse) -> None:
    """A filter on the day reads the files of that day and no others."""
    asked = f"SELECT sum(amount) FROM {SALES} WHERE ingestion_date = DATE '{DAYS[0]}'"
    [[text]] = lakehouse.sql(f"EXPLAIN (TYPE IO, FORMAT JSON) {asked}")
    [table] = json.loads(text)["inputTableColumnInfos"]
    [constraint] = table["constraint"]["columnConstraints"]
    assert constraint["columnName"] == "ingestion_date"
    [domain] = constraint["domain"]["ranges"]
    assert {domain["low"]["value"], domain["high"]["value"]} == {str(DAYS[0])}
    [[plan]] = lakehouse.sql(f"EXPLAIN {asked}")
    assert f":: [[{DAYS[0]}]]" in plan
    with lakehouse.trino.connection() as connection:
        cursor = connection.cursor()
        cursor.execute(asked)
        cursor.fetchall()
        stats = cursor.stats
    assert stats is not None
    assert stats["processedRows"] == example.ORDERS


def _check_layout(lakehouse: Lakehouse) -> None:
    """Data by day, metadata beside it, and Snappy in the files themselves."""
    objects = lakehouse.objects()
    data = [key for key in objects if key.startswith("data/")]
    assert {key.rpartition("/")[0] for key in data} == {f"data/ingestion_date={day}" for day in DAYS[:2]}
    assert all(key.endswith(".parquet") for key in data)
    others = {key.partition("/")[0] for key in objects} - {"data"}
    assert others == {"metadata"}
    store = fs.S3FileSystem(
        access_key=KEY,
        secret_key=lakehouse.server.secret,
        endpoint_override=lakehouse.server.endpoint,
        region="us-east-1",
    )
    for path in lakehouse.files():
        footer = pq.read_metadata(path.removeprefix("s3://"), filesystem=store)
        assert footer.row_group(0).column(0).compression == "SNAPPY"


def _check_evolution(lakehouse: Lakehouse, two_days: dict[str, int]) -> None:
    """Widened, renamed, dropped and put in another order: the files stay, and values follow their columns."""
    lakehouse.edit('"decimal(12,2)"', '"decimal(14,2)"')
    renamed = "customProperties: [{property: renamedFrom, value: customer_id}]"
    lakehouse.edit(
        "name: customer_id, logicalType: string,", f"name: buyer_id, logicalType: string, {renamed},"
    )
    lakehouse.edit("      - {name: country, logicalType: string, description: Country of the customer}\n", "")
    with (lakehouse.folder / "esker.yml").open() as stream:
        text = stream.read()
    (lakehouse.folder / "esker.yml").write_text(
        text.replace("    mode: append\n", "    mode: append\n    drop_columns: [country]\n")
    )
    done = example.apply(lakehouse.folder)
    assert [each.split(" ")[0] for each in done] == ["rename", "widen", "drop"]
    engine = esker.open(lakehouse.folder).engine
    engine.spark.sql(f"ALTER TABLE {SALES} ALTER COLUMN currency AFTER order_id")
    assert [name for name, _, _ in lakehouse.columns()] == [
        "order_id",
        "currency",
        "buyer_id",
        "amount",
        "ingestion_date",
    ]
    assert ("amount", "decimal(14,2)", True) in lakehouse.columns()
    assert two_days.items() < lakehouse.files().items()
    first = example.sales(0)[3]
    asked = f"SELECT * FROM {SALES} WHERE order_id = '{first['order_id']}'"
    assert lakehouse.sql(asked) == [
        [first["order_id"], None, first["customer_id"], Decimal(first["amount"]), DAYS[0]]
    ]

    # A column of the old name is another column: what files hold of the old one is not in it.
    (lakehouse.folder / "esker.yml").write_text(text)
    lakehouse.edit(
        "  - {name: currency,", "  - {name: country, logicalType: string}\n      - {name: currency,"
    )
    assert example.apply(lakehouse.folder) == ["add to table lakehouse.sales: country string"]
    assert lakehouse.sql(f"SELECT count(country), count(*) FROM {SALES}") == [[0, 3 * example.ORDERS]]
    assert two_days.items() < lakehouse.files().items()


def _check_second_partition_field(lakehouse: Lakehouse) -> None:
    """Old files stay by day alone; new ones are by day and country, and both are pruned."""
    before = lakehouse.files()
    lakehouse.edit(
        "name: country, logicalType: string", "name: country, logicalType: string, partitioned: true"
    )
    assert example.apply(lakehouse.folder) == ["partition table lakehouse.sales by country"]
    assert lakehouse.files() == before
    header = [name.replace("customer_id", "buyer_id") for name in example.HEADER]
    file = lakehouse.folder / "landing" / f"{DAYS[3]}.csv"
    rows = [f"ORD-{n},CUST-1,{n}.50,{country},{DAYS[3]}" for n, country in enumerate(("NL", "SE", "NL"))]
    file.write_text("\n".join([",".join(header), *rows]) + "\n")
    assert example.load(lakehouse.folder) == 3
    added = {
        path.partition("/data/")[2].rpartition("/")[0] for path in lakehouse.files().keys() - before.keys()
    }
    assert added == {f"ingestion_date={DAYS[3]}/country={name}" for name in ("NL", "SE")}
    where = f"WHERE ingestion_date = DATE '{DAYS[3]}' AND country = 'NL'"
    assert lakehouse.sql(f"SELECT order_id FROM {SALES} {where} ORDER BY 1") == [["ORD-0"], ["ORD-2"]]
    assert lakehouse.sql(f"SELECT count(*) FROM {SALES} WHERE ingestion_date < DATE '{DAYS[3]}'") == [
        [3 * example.ORDERS]
    ]


def _check_readers(lakehouse: Lakehouse, home: Path) -> None:
    """All programs see the same, now and before."""
    project = lakehouse.folder
    with (
        spark.opened(project) as measure,
        pyiceberg.opened(project) as python,
        duckdb.opened(project, home) as duck,
    ):
        trino = TrinoReader(lakehouse.trino, "iceberg")
        agree(
            {"spark": measure, "pyiceberg": python, "duckdb": duck, "trino": trino},
            "lakehouse.sales",
        )


def _literal(moment: datetime) -> str:
    return f"TIMESTAMP '{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC'"


def test_a_long_reader_is_not_disturbed(lakehouse: Lakehouse) -> None:
    """A query that began before others wrote, and goes on while they do, sees the table as it was."""
    lakehouse.deliver(0)
    with lakehouse.trino.connection() as connection:
        cursor = connection.cursor()
        # Far more rows than Trino hands out at once: it reads on while others write.
        cursor.execute(f"SELECT order_id, n FROM {SALES} CROSS JOIN UNNEST(sequence(1, 5000)) AS t(n)")
        seen = [cursor.fetchone()]
        lakehouse.deliver(1)
        lakehouse.sql(f"DELETE FROM {SALES} WHERE ingestion_date = DATE '{DAYS[0]}'")
        assert lakehouse.sql(f"SELECT count(*), min(ingestion_date) FROM {SALES}") == [
            [example.ORDERS, DAYS[1]]
        ]
        seen += cursor.fetchall()
    assert len(seen) == 5000 * example.ORDERS
    assert {row[0] for row in seen if row is not None} == {row["order_id"] for row in example.sales(0)}


@pytest.mark.soak
def test_trino_starts_with_the_exported_file(lakehouse: Lakehouse, tmp_path: Path) -> None:
    """As it is written: a server of its own finds file and variables, and the table."""
    lakehouse.deliver(0)
    exported = export_reader(load_project(lakehouse.folder), "trino")
    assert set(exported.variables) == {"CATALOG_CREDENTIAL", "S3_KEY", "S3_SECRET"}
    home = tmp_path / "trino"
    home.mkdir()
    with running_trino(home, {exported.name: exported.text}) as trino:
        assert trino.rows(f"SELECT count(*) FROM {SALES}") == [[example.ORDERS]]


@pytest.mark.soak
@pytest.mark.process
def test_the_program(tmp_path: Path) -> None:
    """It runs by itself, and the second time there is nothing new."""
    said = []
    weed = program()
    if weed is None:
        missing("SeaweedFS", "install it into .venv: make servers")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, example.__file__, str(tmp_path / "lakehouse")],
            env={**os.environ, "PATH": f"{weed.parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    first, second = said
    assert "create table lakehouse.sales\nloaded 80 rows\n" in first
    assert "as the contract says: nothing to do\nloaded 0 rows\nwith a new column: nothing to do\n" in second
    assert [text.partition("\nday")[2].partition("For Trino")[0] for text in said] == [
        "         rows  with a currency\n2026-01-15    40     0\n2026-01-16    40     0\n"
        "2026-01-17    40    40\n\n"
    ] * 2
