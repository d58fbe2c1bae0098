"""Rules that look at more than one row: unique values, references, and rules of other engines."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import esker.pipeline.rules as rules_module
from esker.engine.iceberg.table import TableId, load
from esker.errors import InvalidRule, RuleEngineFailed, UnknownReference
from tests.contracts.folder import MakeFolder, contract, contract_folder
from tests.folder import Folder

pytestmark = pytest.mark.spark


def project(make_folder: MakeFolder, properties: str, **keys: Any) -> Folder:
    return contract_folder(make_folder, contract(properties), **keys)


def quarantined(folder: Folder) -> list[tuple[Any, ...]]:
    return folder.rows("shop.sales__quarantine", "rules", "reason")


UNIQUE = """
- {name: id, logicalType: integer}
- {name: email, logicalType: string, unique: true}
"""


def test_unique_in_a_batch_and_in_the_table(make_folder: MakeFolder) -> None:
    """The first row with a value is good; rows without one are like no other."""
    folder = project(make_folder, UNIQUE)
    folder.write_csv("landing/a.csv", ["id", "email"], [(1, "a"), (2, "a"), (3, ""), (4, ""), (5, "b")])
    assert folder.run().rows.quarantined == 1
    assert folder.rows("shop.sales", "id") == [(1,), (3,), (4,), (5,)]
    folder.write_csv("landing/b.csv", ["id", "email"], [(6, "b"), (7, "c")])
    assert folder.run().rows.quarantined == 1
    assert quarantined(folder) == [
        (["email.unique"], 'column "email": "a" is there already'),
        (["email.unique"], 'column "email": "b" is there already'),
    ]


def test_warnings(make_folder: MakeFolder) -> None:
    """A severity makes warnings of rules that stand outside quality: rows are loaded, and counted."""
    warning = "customProperties: [{property: severity, value: warning}]"
    properties = f"""
    - {{name: id, logicalType: integer}}
    - {{name: email, logicalType: string, unique: true, {warning}}}
    - name: size
      logicalType: integer
      logicalTypeOptions: {{minimum: 0, maximum: 9}}
      customProperties: [{{property: severity, value: {{minimum: warning}}}}]
    - name: parent
      logicalType: integer
      relationships: [{{to: shop.sales.id, {warning}}}]
    """
    folder = project(make_folder, properties)
    opened = folder.open()
    opened.apply(opened.plan())
    rows = [(1, "a", 5, ""), (2, "a", -1, ""), (3, "c", 10, ""), (4, "d", 1, 77)]
    folder.write_csv("landing/a.csv", ["id", "email", "size", "parent"], rows)
    result = folder.run()
    assert (result.rows.inserted, result.rows.quarantined) == (3, 1)
    assert folder.rows("shop.sales", "id") == [(1,), (2,), (4,)]
    assert [row[0] for row in quarantined(folder)] == [["size.maximum"]]
    found = {each.metric: each.value for each in folder.open().quality("shop.sales")}
    counted = ["email.unique", "size.minimum", "size.maximum", "parent.reference"]
    assert [found[name] for name in counted] == [1, 1, 1, 1]


def test_primary_key_of_appended_rows(make_folder: MakeFolder) -> None:
    folder = project(make_folder, "- {name: id, logicalType: integer, primaryKey: true}")
    folder.write_csv("landing/a.csv", ["id"], [(1,), (2,), (1,)])
    assert folder.run().rows.quarantined == 1
    folder.write_csv("landing/b.csv", ["id"], [(2,), (3,)])
    assert folder.run().rows.quarantined == 1
    assert folder.rows("shop.sales", "id") == [(1,), (2,), (3,)]
    engine = folder.open().engine
    engine.open_catalog("lake")
    assert load(engine, TableId("lake", "shop.sales")).identifier == ("id",)


@pytest.mark.parametrize("lane", ["small", "large"])
def test_unique_beside_a_key(make_folder: MakeFolder, lane: str) -> None:
    """A row may keep its own value; that of another key it may not take."""
    folder = project(make_folder, UNIQUE, mode="upsert", key=["id"], lane=lane)
    folder.write_csv("landing/a.csv", ["id", "email"], [(1, "a"), (2, "b"), (2, "b"), (3, "b")])
    result = folder.run()
    assert (result.rows.inserted, result.rows.duplicates, result.rows.quarantined) == (2, 1, 1)
    folder.write_csv("landing/b.csv", ["id", "email"], [(1, "a"), (4, "a"), (2, "c")])
    result = folder.run()
    assert (result.rows.unchanged, result.rows.updated, result.rows.quarantined) == (1, 1, 1)
    assert folder.rows("shop.sales", "id", "email") == [(1, "a"), (2, "c")]


def test_whole_tables_are_unique_in_themselves(make_folder: MakeFolder) -> None:
    folder = project(make_folder, UNIQUE, mode="replace")
    for _ in range(2):
        folder.write_csv("landing/a.csv", ["id", "email"], [(1, "a"), (2, "a")])
        result = folder.run()
        assert result.rows.quarantined in (0, 1)
    assert folder.rows("shop.sales", "id") == [(1,)]


def test_references(make_folder: MakeFolder) -> None:
    folder = project(
        make_folder,
        """
- {name: id, logicalType: integer}
- {name: customer, logicalType: string, relationships: [{to: shop.customers.code}]}
""",
    )
    folder.write_csv("landing/a.csv", ["id", "customer"], [(1, "x"), (2, "y"), (3, "")])
    [plan] = folder.open().plan()
    [note] = plan.notes
    assert note.startswith('rule "customer.reference" looks into table "shop.customers", which is not there')
    with pytest.raises(UnknownReference, match=r'odcs.yaml:10: .* there is no table "shop.customers"'):
        folder.run()
    folder.open().engine.spark.sql("CREATE TABLE lake.shop.customers AS SELECT 'x' AS id")
    with pytest.raises(UnknownReference, match='has no column "code"'):
        folder.run()
    folder.open().engine.spark.sql("ALTER TABLE lake.shop.customers RENAME COLUMN id TO code")
    result = folder.run()
    assert (result.rows.inserted, result.rows.quarantined) == (2, 1)
    assert quarantined(folder) == [
        (["customer.reference"], 'column "customer": "y" stands nowhere in shop.customers (code)')
    ]


PLUGGED = """
- {name: id, logicalType: integer}
- name: amount
  logicalType: integer
  quality:
    - {type: custom, engine: strict, name: even, implementation: {divisor: 2}}
    - {type: custom, engine: absent, name: nobody, implementation: x}
"""


def strict(rows: DataFrame, rule: Any) -> DataFrame:
    """A rule engine for this test: numbers must be multiples of a divisor."""
    bad = rows.where(F.col("amount") % rule["divisor"] != 0)
    return bad.select("esker_row", F.concat(F.col("amount").cast("string"), F.lit(" is odd")).alias("reason"))


@pytest.mark.parametrize("keys", [{}, {"mode": "upsert", "key": ["id"]}], ids=["append", "upsert"])
def test_rules_of_other_engines(
    make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any]
) -> None:
    monkeypatch.setattr(rules_module, "installed", lambda: {"strict": strict})
    folder = project(make_folder, PLUGGED, **keys)
    folder.write_csv("landing/a.csv", ["id", "amount"], [(1, 2), (2, 3), (3, 4)])
    result = folder.run()
    assert (result.rows.inserted, result.rows.quarantined) == (2, 1)
    assert quarantined(folder) == [(["even"], "3 is odd")]
    assert 'rule "nobody" is not checked: no installed package knows the engine "absent"' in result.notes


def test_an_engine_that_fails(make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_module, "installed", lambda: {"strict": strict})
    folder = project(make_folder, PLUGGED.replace("divisor", "other"))
    folder.write_csv("landing/a.csv", ["id", "amount"], [(1, 2)])
    with pytest.raises(RuleEngineFailed, match="even") as caught:
        folder.run()
    assert "KeyError" in caught.value.reason


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("amount >", "Syntax error"),
        ("amonut > 0", "amonut"),
        ("amount RLIKE '('", "Unclosed group"),
    ],
)
def test_conditions_that_are_no_sql(make_folder: MakeFolder, condition: str, told: str) -> None:
    folder = project(
        make_folder,
        f"""
- {{name: amount, logicalType: string}}
- name: other
  logicalType: string
  quality:
    - {{type: custom, engine: esker, name: mine, implementation: "{condition}"}}
""",
    )
    folder.write_csv("landing/a.csv", ["amount"], [(1,)])
    [plan] = folder.open().plan(["sales"])
    assert isinstance(plan.error, InvalidRule)
    assert re.search(told, plan.error.message)
    assert plan.error.message.startswith('contracts/sales.odcs.yaml:13: rule "mine" cannot be checked')
    with pytest.raises(InvalidRule):
        folder.open().load("sales", pa.table({"amount": ["1"]}))
