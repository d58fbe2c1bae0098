"""Fields, elements and values inside columns that a contract requires: who lacks one is told, whatever the
table says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from esker.contracts.evolution import with_required
from esker.engine.iceberg.table import TableId, load
from esker.pipeline.alterations import log_alterations
from esker.pipeline.table_changes import RelaxColumns
from tests.contracts.folder import MakeFolder, change_contract, contract, contract_folder
from tests.folder import Folder

pytestmark = pytest.mark.spark

PROPERTIES = """
- {name: id, logicalType: integer, primaryKey: true}
- name: place
  logicalType: object
  properties:
    - {name: city, logicalType: string, required: true}
    - {name: zip, logicalType: string}
- name: lines
  logicalType: array
  items: {logicalType: object, properties: [{name: sku, logicalType: string, required: true}, {name: n, logicalType: integer}]}
- name: names
  logicalType: map
  map:
    key: {logicalType: string}
    value: {logicalType: object, properties: [{name: given, logicalType: string, required: true}, {name: n, logicalType: integer}]}
- name: tags
  logicalType: array
  items: {logicalType: string, required: true}
- name: counts
  logicalType: map
  map: {key: {logicalType: string}, value: {logicalType: integer, required: true}}
"""  # noqa: E501
LAX = PROPERTIES.replace(", required: true", "")
GOOD = {
    "place": {"city": "Ulm"},
    "lines": [{"sku": "a"}, None],
    "names": {"en": {"given": "Ann"}, "de": None},
    "tags": ["a"],
    "counts": {"x": 1},
}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"place": {"zip": "89073"}}, "place.city"),
    ({"lines": [{"sku": "a"}, {"n": 2}]}, "lines.sku"),
    ({"names": {"en": {"n": 1}}}, "names.given"),
    ({"tags": ["a", None]}, "tags.element"),
    ({"counts": {"x": None}}, "counts.value"),
]
PATHS = ["place.city", "lines.element.sku", "names.value.given", "tags.element", "counts.value"]


def project(make_folder: MakeFolder, text: str = PROPERTIES, **keys: Any) -> Folder:
    return contract_folder(make_folder, contract(text), path="landing/*.jsonl", format="jsonl", **keys)


def required(folder: Folder, table: str = "shop.sales") -> dict[str, bool]:
    """Return which fields, elements and values inside columns the table requires."""
    engine = folder.open().engine
    engine.open_catalog("lake")
    schema = json.loads(load(engine, TableId("lake", table)).schema)
    types = {field["name"]: field["type"] for field in schema["fields"]}
    inside = {
        "place": types["place"]["fields"],
        "lines": types["lines"]["element"]["fields"],
        "names": types["names"]["value"]["fields"],
    }
    fields = {f"{name}.{f['name']}": f["required"] for name, fields in inside.items() for f in fields}
    return fields | {
        "tags.element": types["tags"]["element-required"],
        "counts.value": types["counts"]["value-required"],
        "lines.element": types["lines"]["element-required"],
        "names.value": types["names"]["value-required"],
    }


def refused(folder: Folder) -> set[tuple[str, ...]]:
    return {(*rules, reason) for rules, reason in folder.rows("shop.sales__quarantine", "rules", "reason")}


ALL_REFUSED = {("required", f'column "{path}" is required and has no value') for _, path in BAD}


@pytest.mark.parametrize("lane", ["small", "large"])
def test_a_bad_row_does_not_stop_the_others(make_folder: MakeFolder, lane: str) -> None:
    """Rows that lack a required field go to the quarantine; those without the column around it are good."""
    folder = project(make_folder, mode="upsert", lane=lane, deletes="soft", delete_when="zip_code = 'gone'")
    change_contract(folder, "- name: place", "- {name: zip_code, logicalType: string}\n      - name: place")
    bad = [{"id": 10 + index, **GOOD, **changed} for index, (changed, _) in enumerate(BAD)]
    folder.write_jsonl("landing/a.jsonl", [{"id": 1, **GOOD}, {"id": 2}, {"id": 3, "lines": []}, *bad])
    rows = folder.run().rows
    assert (rows.inserted, rows.quarantined) == (3, len(BAD))
    assert refused(folder) == ALL_REFUSED
    shown = "id", "place.city", "get(lines, 0).sku", "get(lines, 1)", "names['en'].given", "place is null"
    frame = folder.open().table("shop.sales").selectExpr(*shown).orderBy("id")
    assert [tuple(row) for row in frame.collect()] == [
        (1, "Ulm", "a", None, "Ann", False),
        (2, None, None, None, None, True),
        (3, None, None, None, None, True),
    ]
    # Of a delete nothing but the key counts.
    gone = [{"id": 1, "zip_code": "gone", "place": {"zip": "1"}, "lines": [{"n": 1}]}]
    folder.write_jsonl("landing/b.jsonl", [*gone, {"id": 2}, {"id": 4, "place": {"city": "Bonn"}}])
    rows = folder.run().rows
    assert (rows.deleted, rows.unchanged, rows.inserted, rows.quarantined) == (1, 1, 1, 0)
    assert folder.rows("shop.sales", "id", "place.city")[0] == (1, "Ulm")


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_contract_that_requires_more(make_folder: MakeFolder, mode: str) -> None:
    """The table keeps its older rows; new rows without a value are refused, and the plan tells."""
    folder = project(make_folder, LAX, mode=mode)
    folder.write_jsonl("landing/a.jsonl", [{"id": 1, "place": {"zip": "1"}}])
    folder.run()
    folder.write("contracts/sales.odcs.yaml", contract(PROPERTIES))
    bad = [{"id": 10 + index, **GOOD, **changed} for index, (changed, _) in enumerate(BAD)]
    folder.write_jsonl("landing/b.jsonl", [{"id": 2, **GOOD}, *bad])
    [plan] = folder.open().plan(["sales"])
    refusal = "is required now: rows without a value are refused, older ones stay"
    assert [str(difference) for difference in plan.differences] == [
        f'column "{path}" {refusal}' for path in PATHS
    ]
    assert plan.changes == ()
    rows = folder.run().rows
    assert (rows.inserted, rows.quarantined) == (1, len(BAD))
    assert refused(folder) == ALL_REFUSED
    assert folder.rows("shop.sales", "id", "place.city") == [(1, None), (2, "Ulm")]


def test_a_required_field_that_comes_later(make_folder: MakeFolder) -> None:
    """Older rows lack it, so that the table cannot require it; rows are checked all the same."""
    folder = project(make_folder, mode="upsert")
    folder.write_jsonl("landing/a.jsonl", [{"id": 1, **GOOD}])
    folder.run()
    change_contract(
        folder,
        "- {name: zip,",
        "- {name: land, logicalType: string, required: true}\n          - {name: zip,",
    )
    opened = folder.open()
    opened.apply(opened.plan())
    assert not required(folder)["place.land"]
    rows = [{"id": 2, "place": {"city": "Ulm", "land": "DE"}}, {"id": 3, "place": {"city": "Ulm"}}]
    folder.write_jsonl("landing/b.jsonl", rows)
    assert folder.run().rows.quarantined == 1
    assert refused(folder) == {("required", 'column "place.land" is required and has no value')}


def test_a_contract_that_requires_less(make_folder: MakeFolder) -> None:
    """What is no longer required is planned as a change, and then may be missing; no log requires it."""
    folder = project(make_folder, mode="upsert")
    folder.write_jsonl("landing/a.jsonl", [{"id": 1, **GOOD}])
    folder.run()
    assert [path for path, is_required in required(folder).items() if is_required] == [
        "place.city",
        "lines.sku",
        "names.given",
        "tags.element",
        "counts.value",
    ]
    assert not any(required(folder, "shop.sales__changes").values())
    folder.write("contracts/sales.odcs.yaml", contract(LAX))
    opened = folder.open()
    [plan] = opened.plan(["sales"])
    [change] = plan.changes
    assert isinstance(change, RelaxColumns)
    assert change.as_json()["columns"] == PATHS
    told = [(difference.what, difference.breaking is not None) for difference in plan.differences]
    assert told == [(f'column "{name}" is no longer required', True) for name in change.as_json()["columns"]]
    opened.apply([plan])
    assert not any(required(folder).values())
    folder.write_jsonl("landing/b.jsonl", [{"id": 2 + index, **bad} for index, (bad, _) in enumerate(BAD)])
    rows = folder.run().rows
    assert (rows.inserted, rows.quarantined) == (len(BAD), 0)
    assert folder.open().plan(["sales"])[0].changes == ()


@pytest.mark.parametrize("lane", ["small", "large"])
def test_older_rows_may_be_deleted_later(make_folder: MakeFolder, lane: str) -> None:
    """A row from before a field was required, and the change log with it, does not stand in the way."""
    folder = project(make_folder, LAX, mode="sync", lane=lane, deletes="hard", guard={"max_delete": 1.0})
    folder.write_jsonl("landing/a.jsonl", [{"id": 1, "place": {"zip": "1"}}, {"id": 2, **GOOD}, {"id": 3}])
    folder.run()
    folder.write("contracts/sales.odcs.yaml", contract(PROPERTIES))
    (folder.path / "landing/a.jsonl").unlink()
    folder.write_jsonl("landing/b.jsonl", [{"id": 2, **GOOD}, {"id": 3}])
    rows = folder.run().rows
    assert (rows.missing, rows.unchanged) == (1, 2)
    assert folder.rows("shop.sales__changes", "id", "place.zip").count((1, "1")) == 2


def test_a_log_that_requires_fields_is_relaxed(make_folder: MakeFolder) -> None:
    """Logs of earlier versions do: a row that lacks such a field could not be written there."""
    folder = project(make_folder, mode="upsert")
    folder.write_jsonl("landing/a.jsonl", [{"id": 1, **GOOD}])
    folder.run()
    opened = folder.open()
    opened.engine.open_catalog("lake")
    log = load(opened.engine, TableId("lake", "shop.sales__changes"))
    older = replace(log, columns=with_required(log.columns, [("place", "city")], required=True))
    pipeline = opened.engine.project.pipeline("sales")
    columns = load(opened.engine, TableId("lake", "shop.sales")).columns
    assert log_alterations(pipeline, log.id, older, columns) == (RelaxColumns(log.id, (("place", "city"),)),)
    assert log_alterations(pipeline, log.id, log, columns) == ()


@pytest.mark.parametrize("kind", ["physicalType", "icebergType"])
def test_a_type_that_is_spelled_out(make_folder: MakeFolder, kind: str) -> None:
    """What the properties inside require counts, although their types stand elsewhere."""
    text = "struct<city: string, zip: string>"
    said = f"physicalType: '{text}'"
    if kind == "icebergType":
        said = f"customProperties: [{{property: icebergType, value: '{text}'}}]"
    folder = project(
        make_folder, PROPERTIES.replace("logicalType: object\n", f"logicalType: object\n  {said}\n", 1)
    )
    folder.write_jsonl("landing/a.jsonl", [{"id": 1, **GOOD}, {"id": 2, "place": {"zip": "1"}}])
    rows = folder.run().rows
    assert (rows.inserted, rows.quarantined) == (1, 1)
    assert required(folder)["place.city"]
