"""Tables with every type that Iceberg has and Spark can read, made from a contract."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from esker.contracts import check
from esker.engine.iceberg.table import TableId, load
from esker.errors import TypeConflict, UnsuitableKey
from esker.project.types import Decimal, Plain, as_text, ddl, parse_type
from tests.contracts.folder import MakeFolder, change_contract, contract, contract_folder
from tests.folder import Folder

pytestmark = pytest.mark.spark

PROPERTIES = """
- {name: id, logicalType: integer, primaryKey: true, description: Counts up}
- {name: token, logicalType: string, customProperties: [{property: icebergType, value: uuid}]}
- {name: code, logicalType: string, customProperties: [{property: icebergType, value: fixed(2)}]}
- {name: yes, logicalType: boolean}
- {name: small, physicalType: int}
- {name: real, physicalType: float}
- {name: deep, physicalType: double}
- {name: price, physicalType: "decimal(12,2)"}
- {name: day, logicalType: date}
- {name: at, logicalType: timestamp}
- {name: local, logicalType: timestamp, logicalTypeOptions: {timezone: false}}
- name: place
  logicalType: object
  properties:
    - {name: city, logicalType: string, required: true}
    - {name: token, customProperties: [{property: icebergType, value: uuid}]}
    - {name: zip, logicalType: string}
- name: lines
  logicalType: array
  items:
    logicalType: object
    properties:
      - {name: sku, logicalType: string, required: true}
      - {name: amount, logicalType: integer}
- name: names
  logicalType: map
  map:
    key: {logicalType: string}
    value: {logicalType: object, properties: [{name: given, logicalType: string, required: true}]}
"""
TOKEN = "0F8FAD5B-D9CB-469F-A165-70867728950E"
ROW: dict[str, Any] = {
    "id": 1,
    "token": TOKEN,
    "code": "DE",
    "yes": True,
    "small": 7,
    "real": 1.5,
    "deep": 2.25,
    "price": "12.50",
    "day": "2026-11-03",
    "at": "2026-11-03T10:00:00Z",
    "local": "2026-11-03T10:00:00",
    "place": {"city": "Ulm", "token": TOKEN, "zip": None},
    "lines": [{"sku": "a", "amount": 1}, None],
    "names": {"en": {"given": "Ann"}, "de": None},
}
BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"token": "no"}, "type", 'column "token": "no" is no uuid'),
    ({"code": "DEU"}, "type", 'column "code": "DEU" is no fixed(2)'),
    ({"place": {"zip": "89073"}}, "required", 'column "place.city" is required and has no value'),
    (
        {"place": {"city": "Ulm", "token": "1-1-1-1-1"}},
        "type",
        'column "place.token": "1-1-1-1-1" is no uuid',
    ),
    ({"lines": [{"sku": "a"}, {"amount": 2}]}, "required", 'column "lines.sku" is required and has no value'),
    ({"names": {"en": {"given": None}}}, "required", 'column "names.given" is required and has no value'),
]


def project(make_folder: MakeFolder, **keys: Any) -> Folder:
    return contract_folder(make_folder, contract(PROPERTIES), path="landing/*.jsonl", format="jsonl", **keys)


def stored_schema(folder: Folder) -> dict[str, Any]:
    engine = folder.open().engine
    engine.open_catalog("lake")
    found: dict[str, Any] = json.loads(load(engine, TableId("lake", "shop.sales")).schema)
    return found


@pytest.mark.parametrize("mode", ["append", "upsert", "sync", "scd2"])
def test_all_types(make_folder: MakeFolder, mode: str) -> None:
    folder = project(make_folder, mode=mode)
    rows = [{**ROW, "id": 10 + index, **changed} for index, (changed, _, _) in enumerate(BAD)]
    folder.write_jsonl("landing/a.jsonl", [ROW, {"id": 2}, *rows])
    result = folder.run()
    assert (result.rows.inserted, result.rows.quarantined) == (2, len(BAD))
    told = folder.rows("shop.sales__quarantine", "rules", "reason")
    assert sorted(told) == sorted(([rule], reason) for _, rule, reason in BAD)
    schema = stored_schema(folder)
    types = {field["name"]: field["type"] for field in schema["fields"]}
    assert types["token"] == "uuid"
    assert types["code"] == "fixed[2]"
    assert {f["name"]: (f["type"], f["required"]) for f in types["place"]["fields"]} == {
        "city": ("string", True),
        "token": ("uuid", False),
        "zip": ("string", False),
    }
    assert types["lines"]["element"]["fields"][0]["required"]
    assert types["names"]["value"]["fields"][0]["required"]
    assert schema["identifier-field-ids"] == [1]
    assert schema["fields"][0]["doc"] == "Counts up"
    shown = "token", "cast(code as string)", "place.city", "place.token", "lines[0].sku", "names['en'].given"
    [row] = folder.open().table("shop.sales").where("id = 1").selectExpr(*shown).collect()
    assert tuple(row) == (TOKEN.lower(), "DE", "Ulm", TOKEN.lower(), "a", "Ann")


def test_the_same_row_again_changes_nothing(make_folder: MakeFolder) -> None:
    folder = project(make_folder, mode="upsert")
    folder.write_jsonl("landing/a.jsonl", [ROW])
    folder.run()
    folder.write_jsonl("landing/b.jsonl", [ROW, {**ROW, "id": 2}])
    rows = folder.run().rows
    assert (rows.unchanged, rows.inserted, rows.updated) == (1, 1, 0)
    folder.write_jsonl("landing/c.jsonl", [{**ROW, "place": {"city": "Bonn"}}])
    assert folder.run().rows.updated == 1


def test_columns_that_come_later(make_folder: MakeFolder) -> None:
    folder = project(make_folder, mode="upsert")
    folder.write_jsonl("landing/a.jsonl", [ROW])
    folder.run()
    later = "- {name: other, customProperties: [{property: icebergType, value: uuid}]}\n      - name: place"
    change_contract(folder, "- name: place", later)
    opened = folder.open()
    opened.apply(opened.plan())
    folder.write_jsonl("landing/b.jsonl", [{**ROW, "other": TOKEN}])
    assert folder.run().rows.updated == 1
    assert stored_schema(folder)["fields"][-1]["type"] == "uuid"
    change_contract(folder, "value: fixed(2)", "value: fixed(3)")
    with pytest.raises(TypeConflict) as caught:
        folder.run()
    assert 'column "code" is fixed(2) in the table and fixed(3)' in caught.value.reason


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"mode": "scd2", "key": ["token"]}, '"token" cannot be key'),
        ({"mode": "upsert", "order_by": "token"}, '"token" cannot be order_by'),
    ],
)
def test_types_that_spark_orders_in_another_way(
    make_folder: MakeFolder, keys: dict[str, Any], told: str
) -> None:
    folder = project(make_folder, **keys)
    folder.write_jsonl("landing/a.jsonl", [ROW])
    with pytest.raises(UnsuitableKey, match=told):
        folder.run()


@pytest.mark.parametrize("layout", ["partitionBy, value: [token]", "sortBy, value: [token]"])
def test_layouts_that_spark_cannot_make(make_folder: MakeFolder, layout: str) -> None:
    folder = project(make_folder)
    change_contract(folder, "- name: sales", f"- name: sales\n    customProperties: [{{property: {layout}}}]")
    folder.write_jsonl("landing/a.jsonl", [ROW])
    with pytest.raises(UnsuitableKey, match='"token" cannot be'):
        folder.run()


@pytest.mark.parametrize(
    "text",
    [
        "int",
        "string",
        "uuid",
        "decimal(5,2)",
        "struct<a:string,b:uuid>",
        "struct<a:string,b:array<string>>",
        "array<map<string,struct<a:date>>>",
        "array<map<string,struct<a:string NOT NULL>>>",
        "map<int,string>",
    ],
)
@pytest.mark.parametrize("is_text", [True, False])
def test_what_always_fits_is_known_by_the_types(spark_running: None, text: str, is_text: bool) -> None:
    """Nothing needs to be built to know whether a value can be unfit."""
    wanted = parse_type(text)
    sent = as_text(wanted) if is_text else wanted
    _, reason = check._fitted(F.lit(None).cast(ddl(sent)), sent, wanted, "x")
    assert check._always_fits(sent, wanted) is (reason is None)


def test_what_is_checked_does_not_multiply_with_the_depth(
    spark_running: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a value deep inside lists, the expressions are built a few times, not a few times at each depth."""
    built = []
    parsed = check._parsed

    def counted(text: Expression, kind: Plain | Decimal, path: str) -> tuple[Expression, Expression]:
        built.append(path)
        return parsed(text, kind, path)

    monkeypatch.setattr(check, "_parsed", counted)
    wanted = parse_type("array<array<array<array<array<int>>>>>")
    check._fitted(F.lit(None).cast(ddl(as_text(wanted))), as_text(wanted), wanted, "x")
    assert len(built) <= 6
