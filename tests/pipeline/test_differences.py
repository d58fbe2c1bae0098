"""`plan` says how contract, table and source differ, and which differences break something."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from esker.cli.main import app
from esker.engine.compat import to_arrow
from esker.errors import ColumnsFrozen, TypeConflict
from tests.contracts.folder import MakeFolder, change_contract, contract, contract_folder
from tests.folder import Folder

pytestmark = pytest.mark.spark

PROPERTIES = """
- {name: id, logicalType: integer, primaryKey: true}
- {name: amount, physicalType: int, required: true}
- {name: note, logicalType: string}
"""
ROWS = [{"id": 1, "amount": 5, "note": "a"}]


@pytest.fixture
def folder(make_folder: MakeFolder) -> Folder:
    found = contract_folder(
        make_folder, contract(PROPERTIES), mode="upsert", path="landing/*.parquet", format="parquet"
    )
    found.open().load("sales", ROWS)
    return found


def told(folder: Folder) -> list[tuple[str, bool]]:
    [plan] = folder.open().plan(["sales"])
    return [(difference.what, difference.breaking is not None) for difference in plan.differences]


def send(folder: Folder, columns: str) -> None:
    """Leave a file in which one row has these columns."""
    spark = folder.open().engine.spark
    (folder.path / "landing").mkdir(exist_ok=True)
    pq.write_table(to_arrow(spark.sql(f"SELECT {columns}")), folder.path / "landing/a.parquet")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "physicalType: int,",
            "physicalType: bigint,",
            ('column "amount" becomes bigint, which is wider', False),
        ),
        (
            "physicalType: int,",
            "logicalType: string,",
            ('column "amount" is int in the table and string declared', True),
        ),
        (
            "physicalType: int, required: true",
            "physicalType: int",
            ('column "amount" is no longer required', True),
        ),
        (
            "{name: note, logicalType: string}",
            "{name: note, logicalType: string, required: true}",
            ('column "note" is required now: rows without a value are refused, older ones stay', False),
        ),
        (
            "{name: note,",
            "{name: remark, customProperties: [{property: renamedFrom, value: note}],",
            ('column "note" becomes "remark"', True),
        ),
        (
            "- {name: note,",
            "- {name: more, logicalType: date}\n      - {name: note,",
            ('column "more" is declared and not in the table yet', False),
        ),
        (
            "      - {name: note, logicalType: string}\n",
            "",
            ('column "note" is in the table and not declared; it stays', False),
        ),
    ],
)
def test_contract_and_table(folder: Folder, old: str, new: str, expected: tuple[str, bool]) -> None:
    change_contract(folder, old, new)
    assert told(folder) == [expected]


@pytest.mark.parametrize(
    ("columns", "keys", "expected"),
    [
        ("1L id, 5 amount, 'a' note", {}, []),
        (
            "1L id, 5 amount, 'a' note, 2.5D rate",
            {},
            [('column "rate" (double) is new in the source, and evolution is freeze', True)],
        ),
        (
            "1L id, 5 amount, 'a' note, 2.5D rate",
            {"evolution": "evolve"},
            [('column "rate" (double) is new in the source, and is added to the table', False)],
        ),
        (
            "1L id, 5L amount, 'a' note",
            {},
            [('column "amount" is bigint in the source, which is wider', True)],
        ),
        (
            "1L id, 'five' amount, 'a' note",
            {},
            [('column "amount" is int in the table and string in the source', True)],
        ),
        ("1L id, 5 amount", {}, [('the source does not send column "note"', False)]),
        ("1L id, 'a' note", {}, [('the source does not send column "amount"', True)]),
    ],
)
def test_source_and_table(
    folder: Folder, columns: str, keys: dict[str, Any], expected: list[tuple[str, bool]]
) -> None:
    folder.change(**keys)
    send(folder, columns)
    assert told(folder) == expected


@pytest.mark.parametrize(
    ("old", "new", "keys", "columns", "expected"),
    [
        (
            "{name: amount, physicalType: int, required: true}",
            "{name: price, physicalType: int, required: true,"
            " customProperties: [{property: renamedFrom, value: amount}]}",
            {},
            "1L id, 5 price, 'a' note",
            [('column "amount" becomes "price"', True)],
        ),
        (
            "physicalType: int, required: true",
            "physicalType: int",
            {},
            "1L id, 'a' note",
            [
                ('column "amount" is no longer required', True),
                ('the source does not send column "amount"', False),
            ],
        ),
        (
            "      - {name: amount, physicalType: int, required: true}\n",
            "",
            {"drop_columns": ["amount"]},
            "1L id, 'a' note",
            [('column "amount" is dropped', True)],
        ),
    ],
)
def test_the_source_is_compared_with_the_table_as_it_will_be(
    folder: Folder, old: str, new: str, keys: dict[str, Any], columns: str, expected: list[tuple[str, bool]]
) -> None:
    """A source that follows a change of the contract breaks nothing."""
    change_contract(folder, old, new)
    folder.change(**keys)
    send(folder, columns)
    assert told(folder) == expected


def test_all_differences_are_told_and_the_error_is_kept(folder: Folder) -> None:
    """What would stop the run does not keep a person from seeing the rest."""
    send(folder, "1L id, 'five' amount, 2.5D rate")
    change_contract(
        folder, "{name: note, logicalType: string}", "{name: note, logicalType: string, required: true}"
    )
    [plan] = folder.open().plan(["sales"])
    assert isinstance(plan.error, TypeConflict)
    assert len(plan.differences) == 4
    with pytest.raises(TypeConflict):
        folder.open().apply([plan])
    with pytest.raises(TypeConflict):
        folder.run()


def test_the_command(folder: Folder) -> None:
    send(folder, "1L id, 5 amount, 'a' note, 2.5D rate")
    project = ["--project", str(folder.path)]
    shown = CliRunner().invoke(app, ["plan", *project])
    line = 'column "rate" (double) is new in the source, and evolution is freeze; breaking: the run stops'
    assert f"source and table: {line}" in shown.stdout
    assert shown.exit_code == ColumnsFrozen.exit_status
    assert "ESK-CONTRACT-003" in shown.stderr
    applied = CliRunner().invoke(app, ["plan", "--apply", *project])
    assert applied.exit_code == ColumnsFrozen.exit_status
