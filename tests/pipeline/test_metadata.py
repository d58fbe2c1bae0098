"""What is known of a table: declared, agreed and stored."""

from __future__ import annotations

import json

import pytest

from esker.errors import TableNotFound
from tests.contracts.folder import MakeFolder, contract, contract_folder
from tests.folder import Folder

pytestmark = pytest.mark.spark

PROPERTIES = """
- {name: id, logicalType: integer, primaryKey: true}
- {name: email, logicalType: string, classification: personal, tags: [contact], unique: true}
- name: day
  logicalType: date
  partitioned: true
"""


def test_before_and_after_the_first_run(make_folder: MakeFolder) -> None:
    text = contract(PROPERTIES, "- {metric: rowCount, mustBeGreaterThan: 0, name: filled}")
    folder = contract_folder(make_folder, text, mode="upsert")
    before = folder.open().metadata("shop.sales")
    assert before.stored is None
    assert before.statistics is None
    assert before.key == ("id",)
    assert before.layout.partition_by == ("day",)
    assert [(c.column.name, c.is_stored) for c in before.columns] == [
        ("id", False),
        ("email", False),
        ("day", False),
    ]
    folder.write_csv("landing/a.csv", ["id", "email", "day"], [(1, "a@b.de", "2026-01-01"), (2, "", "")])
    folder.run()
    after = folder.open().metadata("shop.sales")
    assert all(column.is_stored for column in after.columns)
    email = after.columns[1]
    assert email.agreed is not None
    assert (email.agreed.classification, email.agreed.tags, email.agreed.is_unique) == (
        "personal",
        ("contact",),
        True,
    )
    assert after.contract is not None
    assert (after.contract.version, [audit.name for audit in after.contract.audits]) == ("1.0.0", ["filled"])
    [upstream] = after.lineage.upstream
    assert (upstream.pipeline, upstream.source, upstream.reads) == ("sales", "files", "landing/*.csv")
    assert upstream.changeset == after.lineage.changeset == 1
    beside = {f"shop.sales__{ending}" for ending in ("changes", "files", "quality")}
    assert set(after.lineage.beside) >= beside
    assert after.statistics is not None
    assert after.statistics.files.rows == 2
    assert {c.column: c.nulls for c in after.statistics.columns}["email"] == 1


def test_a_column_that_is_declared_later(make_folder: MakeFolder) -> None:
    folder = make_folder(pipelines={"sales": Folder.files_pipeline()})
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    folder.change(columns={"note": "string"})
    known = folder.open().metadata("shop.sales")
    assert [(c.column.name, c.is_stored) for c in known.columns] == [("id", True), ("note", False)]
    assert known.key == ()


def test_of_no_pipeline(make_folder: MakeFolder) -> None:
    with pytest.raises(TableNotFound):
        make_folder(pipelines={"sales": Folder.files_pipeline()}).open().metadata("shop.other")


def test_show_tells_where_rows_come_from(make_folder: MakeFolder) -> None:
    folder = contract_folder(make_folder, contract(PROPERTIES))
    folder.write_csv("landing/a.csv", ["id", "email", "day"], [(1, "a@b.de", "2026-01-01")])
    folder.run()
    found = folder.open().show("shop.sales").as_json()
    assert found["contract"]["rules"]
    assert found["key"] == ["id"]
    assert found["lineage"]["upstream"][0]["contract"] == "sales 1.0.0 (active)"
    assert json.dumps(found, default=str)
