"""Python functions as sources: what they may yield, how far they are, and what becomes of their mistakes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import esker
from esker.errors import FunctionFailed, FunctionNotFound, UnsuitableData
from esker.sources.function import find_function
from esker.sources.parts import Parts
from tests.folder import Folder

MakeFolder = Callable[..., Folder]


def project(make_folder: MakeFolder, code: str, name: str = "orders", **keys: Any) -> Folder:
    source = {"type": "python", "function": f"sources/shop.py:{name}", **keys.pop("source", {})}
    pipeline = {"source": source, "table": "shop.orders", "mode": "append", **keys}
    folder = make_folder(pipelines={"orders": pipeline})
    write(folder, code)
    return folder


def write(folder: Folder, code: str) -> None:
    folder.write("sources/shop.py", "import esker\n" + textwrap.dedent(code))


def test_a_marked_function_is_still_a_function() -> None:
    @esker.source
    def rows(count: int) -> list[dict[str, int]]:
        """Count."""
        return [{"id": number} for number in range(count)]

    assert rows(2) == [{"id": 0}, {"id": 1}]
    assert rows.__doc__ == "Count."


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("sources/none.py:orders", "There is no file sources/none.py."),
        ("sources/shop.py:none", "There is no none in sources/shop.py."),
        ("sources/shop.py:plain", "plain is not marked with @esker.source."),
        ("sources/broken.py:orders", "It cannot be imported: ZeroDivisionError: division by zero"),
        ("no_such_module:orders", "It cannot be imported: ModuleNotFoundError"),
    ],
)
def test_functions_that_are_not_there(tmp_path: Path, place: str, why: str) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources/shop.py").write_text("def plain():\n    return []\n")
    (tmp_path / "sources/broken.py").write_text("1 / 0\n")
    with pytest.raises(FunctionNotFound) as raised:
        find_function(place, tmp_path)
    assert why in str(raised.value.reason)


@pytest.mark.spark
def test_rows_of_all_forms(make_folder: MakeFolder) -> None:
    folder = project(
        make_folder,
        """
        import pyarrow as pa
        from datetime import date
        from decimal import Decimal

        @esker.source
        def orders(country, spark, since=None):
            assert since is None
            yield {"id": 1, "country": country, "amount": Decimal("1.50")}
            yield [{"id": 2, "day": date(2026, 11, 3)}, {"id": 3, "tags": ["a", "b"]}]
            yield pa.table({"id": [4], "amount": pa.array([Decimal("2.25")], pa.decimal128(9, 2))})
            yield pa.RecordBatch.from_pylist([{"id": 5}])
        """,
        source={"arguments": {"country": "DE"}},
    )
    result = folder.run("orders")
    assert result.rows.inserted == 5
    rows = folder.rows("shop.orders", "id", "country", "amount", "day", "tags")
    assert sorted(rows) == [
        (1, "DE", Decimal("1.50"), None, None),
        (2, None, None, date(2026, 11, 3), None),
        (3, None, None, None, ["a", "b"]),
        (4, None, Decimal("2.25"), None, None),
        (5, None, None, None, None),
    ]


@pytest.mark.spark
def test_a_frame_of_spark(make_folder: MakeFolder) -> None:
    folder = project(
        make_folder,
        """
        @esker.source
        def orders(spark):
            return spark.range(1000)
        """,
        mode="replace",
    )
    assert folder.run("orders").rows.inserted == 1000
    assert folder.run("orders").rows.read == 1000
    assert len(folder.rows("shop.orders")) == 1000
    write(folder, "@esker.source\ndef orders(spark):\n    yield spark.range(2)\n    yield {'id': 3}\n")
    with pytest.raises(FunctionFailed, match="failed") as raised:
        folder.run("orders")
    assert "a Spark frame and more" in raised.value.reason


INCREMENTAL = """
    @esker.source
    def orders(since, until={until}, fails_at=None):
        for number in range((since or 0) + 1, until + 1):
            if number == fails_at:
                raise ConnectionError("the shop does not answer")
            yield {{"id": number}}
            if number % 10 == 0:
                yield esker.reached(number)
        yield esker.reached(until)
"""


@pytest.mark.spark
def test_it_goes_on_where_it_was(make_folder: MakeFolder) -> None:
    """In batches; a batch behind a failure is read again, and nothing twice."""
    folder = project(
        make_folder,
        INCREMENTAL.format(until=35),
        source={"rows_per_batch": 10, "arguments": {"fails_at": 27}},
    )
    with pytest.raises(FunctionFailed) as raised:
        folder.run("orders")
    assert raised.value.reason.startswith("ConnectionError: the shop does not answer (shop.py, line ")
    assert sorted(folder.rows("shop.orders", "id")) == [(number,) for number in range(1, 21)]
    folder.document["pipelines"]["orders"]["source"]["arguments"] = {}
    folder.save()
    result = folder.run("orders")
    assert (result.rows.inserted, result.batches) == (15, 2)
    assert result.position == {"from": {"reached": 20}, "to": {"reached": 35}}
    assert sorted(folder.rows("shop.orders", "id")) == [(number,) for number in range(1, 36)]
    again = folder.run("orders")
    assert (again.rows.read, again.batches) == (0, 0)
    write(folder, INCREMENTAL.format(until=37))
    assert folder.run("orders").rows.inserted == 2


@pytest.mark.spark
def test_columns_that_come_later(make_folder: MakeFolder) -> None:
    """Within a batch and from batch to batch; numbers that become fractions widen."""
    folder = project(
        make_folder,
        """
        @esker.source
        def orders():
            for number in range(30_000):
                yield {"id": number, "ratio": 1 if number < 15_000 else 1.5, "late": None}
            yield {"id": 30_000, "late": {"code": "x"}}
        """,
    )
    assert folder.run("orders").rows.inserted == 30_001
    rows = folder.rows("shop.orders", "id", "ratio", "late")
    assert sum(ratio or 0 for _, ratio, _ in rows) == 15_000 * 2.5
    assert [late["code"] for _, _, late in rows if late is not None] == ["x"]


@pytest.mark.spark
def test_guessed_types_become_those_of_the_table(make_folder: MakeFolder) -> None:
    folder = project(
        make_folder,
        """
        @esker.source
        def orders():
            yield {"id": 1, "amount": 5, "price": 0.1, "day": "2026-11-03"}
        """,
        columns={"id": "bigint", "amount": "decimal(12,2)", "price": "decimal(38,18)", "day": "date"},
    )
    folder.run("orders")
    stored = (1, Decimal("5.00"), Decimal("0.1"), date(2026, 11, 3))
    assert folder.rows("shop.orders", "id", "amount", "price", "day") == [stored]
    write(folder, "@esker.source\ndef orders():\n    yield {'id': 2, 'amount': 5.005}\n")
    with pytest.raises(UnsuitableData):  # not 5.00
        folder.run("orders")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return None", "It returned nothing"),
        ("yield 5", "It yields int"),
        ("yield {'id': 1}; yield esker.reached(object())", "JSON has no such position"),
        ("yield {'id': 1}; yield esker.reached((1, 2))", "would come back from JSON as [1, 2]"),
        ("yield esker.reached(1); yield {'id': 1}", "Rows come behind the last position"),
        ("yield None", "It yields NoneType"),
    ],
)
def test_mistakes_of_functions(make_folder: MakeFolder, body: str, why: str) -> None:
    folder = project(make_folder, f"@esker.source\ndef orders():\n    {body}\n")
    with pytest.raises(FunctionFailed) as raised:
        folder.run("orders")
    assert why in raised.value.reason


@pytest.mark.spark
def test_values_that_do_not_go_together(make_folder: MakeFolder) -> None:
    folder = project(make_folder, "@esker.source\ndef orders():\n    yield [{'id': 1}, {'id': 'x'}]\n")
    with pytest.raises(UnsuitableData):
        folder.run("orders")


@pytest.mark.spark
def test_arguments_that_it_does_not_take(make_folder: MakeFolder) -> None:
    folder = project(
        make_folder,
        "@esker.source\ndef orders(country):\n    return []\n",
        source={"arguments": {"land": "DE"}},
    )
    with pytest.raises(FunctionFailed, match="failed") as raised:
        folder.run("orders")
    assert "It cannot be called like that" in raised.value.reason


@pytest.mark.spark
def test_what_is_gone_at_the_source_is_deleted(make_folder: MakeFolder) -> None:
    """A sync takes the whole of what it yields, whatever positions it reaches on the way."""
    code = """
        @esker.source
        def orders():
            for number in {numbers}:
                yield {{"id": number}}
                yield esker.reached(number)
    """
    folder = project(
        make_folder,
        code.format(numbers=[1, 2, 3]),
        mode="sync",
        key=["id"],
        guard={"max_delete": "50%"},
        deletes="hard",
        source={"rows_per_batch": 1},
    )
    assert folder.run("orders").rows.inserted == 3
    write(folder, code.format(numbers=[1, 3]))
    result = folder.run("orders")
    assert (result.rows.missing, result.batches) == (1, 1)
    assert sorted(folder.rows("shop.orders", "id")) == [(1,), (3,)]


@pytest.mark.spark
def test_reading_without_loading(make_folder: MakeFolder) -> None:
    folder = project(make_folder, INCREMENTAL.format(until=35), source={"rows_per_batch": 10})
    opened = folder.open()
    found = opened.read("orders")
    assert found.schema == pa.schema([("id", pa.int64())])
    assert found.column("id").to_pylist() == list(range(1, 36))
    assert len(opened.read("orders", limit=12)) == 12
    assert [row["id"] for row in opened.peek("orders", limit=3).rows] == [1, 2, 3]
    assert folder.run("orders").rows.inserted == 35  # nothing was remembered


@pytest.mark.spark
def test_reading_files_without_loading(make_folder: MakeFolder) -> None:
    folder = make_folder()
    folder.write_csv("landing/a.csv", ["id", "country"], [(1, "DE"), (2, "FR")])
    folder.write_csv("landing/b.csv", ["id", "amount"], [(3, "1.5")])
    found = folder.open().read("sales")
    assert sorted(found.to_pylist(), key=lambda row: row["id"])[2]["amount"] is not None
    assert len(found) == 3


@pytest.mark.spark
def test_rows_without_any_value(make_folder: MakeFolder) -> None:
    """They are rows: the key that they lack sends them to the quarantine, and nothing loses them."""
    folder = project(
        make_folder,
        """
        @esker.source
        def orders():
            yield [{"id": 1, "name": "a"}]
            yield [{"id": None, "name": None}] * 2
        """,
        mode="upsert",
        key=["id"],
    )
    rows = folder.run("orders").rows
    assert (rows.read, rows.inserted, rows.quarantined) == (3, 1, 2)


def test_two_columns_of_one_name() -> None:
    with pytest.raises(UnsuitableData) as raised:
        Parts().add(pa.table([[1], [2]], names=["id", "id"]))
    assert raised.value.reason == "Two columns have the same name."


@pytest.mark.spark
def test_rows_of_a_key_are_not_cut_apart(make_folder: MakeFolder) -> None:
    """In a mode that swaps rows, the second batch would take the place of the first."""
    folder = project(
        make_folder,
        """
        @esker.source
        def orders():
            for part in range(2):
                yield [{"id": 1, "line": part * 60_000 + number} for number in range(60_000)]
                yield esker.reached(part)
        """,
        mode="delete_insert",
        key=["id"],
    )
    assert folder.run("orders").rows.inserted == 120_000
