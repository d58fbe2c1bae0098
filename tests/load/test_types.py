"""Tables with every type of Iceberg's format version 2 that Spark can read, made from a contract.

Without `uuid` and `fixed`, which Arrow does not write as Iceberg wants them, both lanes load them.
"""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal as Number
from typing import Any

import pytest
from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from esker.contracts import check
from esker.engine.iceberg.table import TableId, load
from esker.errors import TypeConflict, UnsuitableKey
from esker.load.collected import collect
from esker.project.types import Decimal, Plain, as_text, ddl, parse_type
from tests.contracts.folder import MakeFolder, change_contract, contract, contract_folder
from tests.folder import Folder

pytestmark = pytest.mark.spark

LANES = ("small", "large")

OF_ALL_LANES = """
- {name: id, logicalType: integer, primaryKey: true, description: Counts up}
- {name: text, logicalType: string}
- {name: raw, physicalType: binary}
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
    - {name: city, logicalType: string, required: true, description: Where it is}
    - {name: zip, logicalType: string}
- name: tags
  logicalType: array
  items: {logicalType: string, required: true, description: One word}
- name: counts
  logicalType: map
  map: {key: {logicalType: string}, value: {logicalType: integer, required: true}}
- name: lines
  logicalType: array
  items:
    logicalType: object
    properties:
      - {name: sku, logicalType: string, required: true, description: What it is}
      - {name: amount, logicalType: integer}
- name: names
  logicalType: map
  map:
    key: {logicalType: string}
    value: {logicalType: object, properties: [{name: given, logicalType: string, required: true, description: First}]}
"""  # noqa: E501
PROPERTIES = (
    OF_ALL_LANES.replace(
        "    - {name: zip,",
        "    - {name: token, customProperties: [{property: icebergType, value: uuid}]}\n    - {name: zip,",
    )
    + """
- {name: token, logicalType: string, customProperties: [{property: icebergType, value: uuid}]}
- {name: code, logicalType: string, customProperties: [{property: icebergType, value: fixed(2)}]}
"""
)
TOKEN = "0F8FAD5B-D9CB-469F-A165-70867728950E"
OF_ALL_LANES_ROW: dict[str, Any] = {
    "id": 1,
    "text": "Zoë",
    "raw": "bytes",
    "yes": True,
    "small": 7,
    "real": 1.5,
    "deep": 2.25,
    "price": "12.50",
    "day": "2026-11-03",
    "at": "2026-11-03T10:00:00Z",
    "local": "2026-11-03T10:00:00",
    "place": {"city": "Ulm", "zip": None},
    "tags": ["a", "b"],
    "counts": {"x": 1},
    "lines": [{"sku": "a", "amount": 1}, None],
    "names": {"en": {"given": "Ann"}, "de": None},
}
STORED: dict[str, Any] = {
    **OF_ALL_LANES_ROW,
    "raw": b"bytes",
    "price": Number("12.50"),
    "day": date(2026, 11, 3),
    "at": datetime(2026, 11, 3, 10),
    "local": datetime(2026, 11, 3, 10),
}
ROW: dict[str, Any] = {
    **OF_ALL_LANES_ROW,
    "token": TOKEN,
    "code": "DE",
    "place": {"city": "Ulm", "token": TOKEN, "zip": None},
}
Bad = list[tuple[dict[str, Any], str, str]]
LACKING: Bad = [
    ({"place": {"zip": "89073"}}, "required", 'column "place.city" is required and has no value'),
    ({"lines": [{"sku": "a"}, {"amount": 2}]}, "required", 'column "lines.sku" is required and has no value'),
    ({"names": {"en": {"given": None}}}, "required", 'column "names.given" is required and has no value'),
    ({"tags": ["a", None]}, "required", 'column "tags.element" is required and has no value'),
    ({"counts": {"x": 1, "y": None}}, "required", 'column "counts.value" is required and has no value'),
]
BAD: Bad = [
    *LACKING,
    ({"token": "no"}, "type", 'column "token": "no" is no uuid'),
    ({"code": "DEU"}, "type", 'column "code": "DEU" is no fixed(2)'),
    (
        {"place": {"city": "Ulm", "token": "1-1-1-1-1"}},
        "type",
        'column "place.token": "1-1-1-1-1" is no uuid',
    ),
]


def project(make_folder: MakeFolder, properties: str = PROPERTIES, **keys: Any) -> Folder:
    return contract_folder(make_folder, contract(properties), path="landing/*.jsonl", format="jsonl", **keys)


def load_with_bad_rows(folder: Folder, row: dict[str, Any], bad: Bad) -> None:
    rows = [{**row, "id": 10 + index, **changed} for index, (changed, _, _) in enumerate(bad)]
    folder.write_jsonl("landing/a.jsonl", [row, {"id": 2}, *rows])
    result = folder.run()
    assert (result.rows.inserted, result.rows.quarantined) == (2, len(bad))
    told = folder.rows("shop.sales__quarantine", "rules", "reason")
    assert sorted(told) == sorted(([rule], reason) for _, rule, reason in bad)


def stored_schema(folder: Folder) -> dict[str, Any]:
    engine = folder.open().engine
    engine.open_catalog("lake")
    found: dict[str, Any] = json.loads(load(engine, TableId("lake", "shop.sales")).schema)
    return found


@pytest.mark.parametrize("keys", [{"mode": "append"}, *({"mode": "upsert", "lane": lane} for lane in LANES)])
def test_types_of_all_lanes(
    make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any]
) -> None:
    """Each type is there, takes its value, and says what is required and described inside it."""
    folder = project(make_folder, OF_ALL_LANES, **keys)
    collected = []

    def counted(*given: Any) -> Any:
        collected.append(given)
        return collect(*given)

    monkeypatch.setattr("esker.load.modes.keyed.collect", counted)
    load_with_bad_rows(folder, OF_ALL_LANES_ROW, LACKING)
    assert bool(collected) == (keys.get("lane") == "small")
    schema = stored_schema(folder)
    types = {f["name"]: f["type"] for f in schema["fields"] if not f["name"].startswith("_esker")}
    types.pop("deleted", None)
    assert [name for name in types if isinstance(types[name], dict)] == [
        "place",
        "tags",
        "counts",
        "lines",
        "names",
    ]
    assert [kind for kind in types.values() if isinstance(kind, str)] == [
        "long",
        "string",
        "binary",
        "boolean",
        "int",
        "float",
        "double",
        "decimal(12, 2)",
        "date",
        "timestamptz",
        "timestamp",
    ]
    assert types["tags"]["element-required"]
    assert types["counts"]["value-required"]
    assert not types["lines"]["element-required"]
    assert not types["names"]["value-required"]
    described = {
        "place": types["place"]["fields"][0],
        "lines": types["lines"]["element"]["fields"][0],
        "names": types["names"]["value"]["fields"][0],
    }
    assert {name: (field["required"], field["doc"]) for name, field in described.items()} == {
        "place": (True, "Where it is"),
        "lines": (True, "What it is"),
        "names": (True, "First"),
    }
    [tags] = (field for field in schema["fields"] if field["name"] == "tags")
    assert tags["doc"] == "element: One word"
    [row] = folder.open().table("shop.sales").where("id = 1").select(*STORED).collect()
    assert row.asDict(recursive=True) == STORED


def test_descriptions_that_change(make_folder: MakeFolder) -> None:
    """Descriptions at any depth are planned and stored as metadata; no file is touched."""
    folder = project(make_folder, OF_ALL_LANES, mode="append")
    folder.write_jsonl("landing/a.jsonl", [OF_ALL_LANES_ROW])
    folder.run()
    for old, new in (
        ("Counts up", "Its number"),
        ("Where it is", "It's there"),
        ("What it is", "An article"),
    ):
        change_contract(folder, f"description: {old}", f"description: {new}")
    change_contract(folder, "description: First", "description: Given name")
    change_contract(
        folder, "{name: zip, logicalType: string}", "{name: zip, logicalType: string, description: Code}"
    )
    docs = {
        "id": "Its number",
        "place.city": "It's there",
        "place.zip": "Code",
        "lines.element.sku": "An article",
        "names.value.given": "Given name",
    }
    opened = folder.open()
    [plan] = opened.plan()
    assert [change.as_json() for change in plan.changes] == [
        {"change": "describe_columns", "table": "shop.sales", "columns": docs}
    ]
    assert str(plan.changes[0]) == f"describe in table shop.sales: {', '.join(docs)}"
    opened.apply([plan])
    types = {field["name"]: field["type"] for field in stored_schema(folder)["fields"]}
    assert [field["doc"] for field in types["place"]["fields"]] == ["It's there", "Code"]
    assert types["lines"]["element"]["fields"][0]["doc"] == "An article"
    assert types["names"]["value"]["fields"][0]["doc"] == "Given name"
    assert types["tags"]["element-required"]
    assert folder.open().plan()[0].is_empty
    assert len(folder.open().show("shop.sales").snapshots) == 1


@pytest.mark.parametrize("mode", ["append", "upsert", "sync", "scd2"])
def test_types_that_spark_lacks(make_folder: MakeFolder, mode: str) -> None:
    folder = project(make_folder, mode=mode)
    load_with_bad_rows(folder, ROW, BAD)
    schema = stored_schema(folder)
    types = {field["name"]: field["type"] for field in schema["fields"]}
    assert types["token"] == "uuid"
    assert types["code"] == "fixed[2]"
    assert {f["name"]: (f["type"], f["required"]) for f in types["place"]["fields"]} == {
        "city": ("string", True),
        "token": ("uuid", False),
        "zip": ("string", False),
    }
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
        "array<map<string,string NOT NULL> NOT NULL>",
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
