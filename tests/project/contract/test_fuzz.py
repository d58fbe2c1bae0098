# ruff: noqa: E501
"""Contracts in which one value is of the wrong kind: each is read, or told with its line."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from esker.project.contract.read import UnreadableContract, contract_of
from esker.project.document import Document, KeyPath, read_document

WRONG: tuple[Any, ...] = (
    None,
    True,
    10**400,
    float("inf"),
    float("nan"),
    "9" * 5_000,
    [None],
    ["x", 1],
    {"x": 1},
)
_PARTS = 3
"""Each place gets every third of them, and its neighbours the others: all take a minute."""
HEAD = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.2.0
schema:
  - name: orders
    properties:
"""
TABLE = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.2.0
status: active
slaDefaultElement: orders.at
slaProperties: [{property: latency, value: 2, unit: h, element: orders.at}]
schema:
  - name: orders
    physicalName: orders
    properties:
      - {name: at, logicalType: timestamp}
      - {name: email, logicalType: string}
    relationships: [{from: [orders.email], to: [shop.people.email], id: of_person}]
    quality:
      - {metric: rowCount, mustBeGreaterThan: 10}
      - {metric: duplicateValues, mustBe: 0, arguments: {properties: [email, at]}}
      - {type: sql, query: 'select count(*) from ${table}', mustNotBe: 3}
      - type: custom
        engine: esker
        implementation: {rowCountChange: {against: weekday, mustBeBetween: [-10, 50]}}
    customProperties:
      - {property: compression, value: snappy}
      - {property: format, value: parquet}
      - {property: targetFileSize, value: 64MB}
      - {property: formatVersion, value: 3}
      - {property: partitionBy, value: [email]}
      - {property: sortBy, value: email}
      - {property: tableProperties, value: {write.metadata.metrics.default: full}}
"""
COLUMNS = (
    """\
      - name: id
        physicalName: order_id
        logicalType: integer
        primaryKey: true
        primaryKeyPosition: 1
        description: Its number
        logicalTypeOptions: {minimum: 0, exclusiveMaximum: 100, multipleOf: 1, format: u8}
        enum: [{value: 1}, {value: 2}]
    """,
    """\
      - name: at
        logicalType: timestamp
        required: true
        partitioned: true
        partitionKeyPosition: 1
        logicalTypeOptions: {minimum: '2020-01-01', timezone: true, defaultTimezone: UTC}
        customProperties:
          - {property: partitionTransform, value: day}
          - {property: sortPosition, value: 1}
          - {property: sortDirection, value: desc}
          - {property: bloomFilter, value: true}
          - {property: renamedFrom, value: moment}
    """,
    """\
      - name: email
        logicalType: string
        physicalType: varchar(80)
        classification: personal
        tags: [contact]
        unique: true
        logicalTypeOptions: {minLength: 3, maxLength: 80, pattern: '@', format: email}
        customProperties:
          - {property: severity, value: {pattern: warning}}
          - {property: holdAbove, value: 2%}
          - {property: failAbove, value: 10}
        relationships: [{to: shop.people.email}]
        quality:
          - {metric: nullValues, mustBeLessThan: 5, unit: percent, severity: warning}
          - {metric: missingValues, mustBe: 0, arguments: {missingValues: [n/a]}, name: filled}
          - {metric: invalidValues, mustBe: 0, arguments: {validValues: [a@b, c@d]}}
          - {metric: invalidValues, mustBe: 0, arguments: {pattern: '@'}}
          - {metric: duplicateValues, mustBeBetween: [0, 9]}
          - {type: custom, engine: esker, implementation: length(email) > 1}
          - {type: custom, engine: esker, implementation: {condition: email > '', reason: is empty}}
          - {type: custom, engine: other, implementation: {check: it}, description: Theirs}
          - {type: text, description: nobody checks it}
    """,
    """\
      - name: place
        logicalType: object
        logicalTypeOptions: {minProperties: 1, maxProperties: 2, required: [city]}
        properties: [{name: city, logicalType: string}, {name: zip, logicalType: integer}]
    """,
    """\
      - name: tags
        logicalType: array
        logicalTypeOptions: {minItems: 0, maxItems: 9, uniqueItems: true}
        items: {logicalType: number, logicalTypeOptions: {maximum: 1.5, exclusiveMinimum: 0}}
    """,
    """\
      - name: names
        logicalType: map
        map: {key: {logicalType: string}, value: {logicalType: date, logicalTypeOptions: {maximum: '2030-01-01'}}}
    """,
    """\
      - name: spelled
        customProperties: [{property: icebergType, value: 'struct<a: int>'}]
    """,
    """\
      - {name: vector, logicalType: vector, logicalTypeOptions: {dimensions: 3}}
    """,
)
OLD = """\
apiVersion: v3.0.2
kind: DataContract
id: orders
version: 1.2.0
status: current
schema:
  - name: orders
    properties:
      - name: id
        logicalType: integer
        logicalTypeOptions: {minimum: 0, maximum: 9, exclusiveMaximum: true, exclusiveMinimum: false}
        quality:
          - {rule: nullCheck, description: filled}
          - {rule: duplicateCount, mustBeLessThan: 1, unit: percent}
          - {rule: validValues, validValues: [1, 2], arguments: {}}
          - {rule: minCheck, customProperties: [{property: min, value: 1}]}
    quality: [{rule: rowCount, mustBeBetween: [1, 9]}]
"""


def places(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [
        *([path] if path else []),
        *(place for key, each in inside for place in places(each, (*path, key))),
    ]


@pytest.mark.parametrize("text", [TABLE, OLD, *(HEAD + column for column in COLUMNS)])
def test_a_value_of_the_wrong_kind(tmp_path: Path, text: str) -> None:
    """Never an error of Python's own, and never one without a line."""
    path = tmp_path / "orders.odcs.yaml"
    path.write_text(text)
    document = read_document(path, path.name)
    assert contract_of(deepcopy(document), "shop.orders").columns
    # What stands around the columns is the same for each of them.
    begin: KeyPath = ("schema", 0, "properties", 0) if text.startswith(HEAD) else ()
    for number, place in enumerate(places(document.at(begin), begin)):
        for wrong in WRONG[number % _PARTS :: _PARTS]:
            changed = Document(document.file, deepcopy(document.data), document.marks)
            changed.put(place, deepcopy(wrong))
            try:
                contract_of(changed, "shop.orders").as_declared()
            except UnreadableContract as told:
                if not all(each.line for each in told.problems):
                    pytest.fail(f"{place}: {str(wrong)[:20]}: no line: {told}")
            except Exception as error:
                pytest.fail(f"{place}: {str(wrong)[:20]}: {error!r}")
