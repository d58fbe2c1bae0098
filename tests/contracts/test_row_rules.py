"""Every kind of row rule, run by Spark on values that keep to it and on values that break it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from esker.contracts.check import BAD, check
from esker.contracts.rules import RowRules
from esker.load.rejected import SIDE_COLUMNS
from esker.project.contract import read_contract, type_options
from esker.project.types import ddl, quoted
from tests.folder import Folder

pytestmark = pytest.mark.spark


def options(kind: str, **said: Any) -> dict[str, Any]:
    return {"logicalType": kind, "logicalTypeOptions": said}


def metric(name: str, kind: str = "string", **arguments: Any) -> dict[str, Any]:
    given = {"arguments": arguments} if arguments else {}
    return {"logicalType": kind, "quality": [{"metric": name, "mustBe": 0, **given}]}


def text(name: str) -> dict[str, Any]:
    return options("string", format=name)


NUMBERS = {"name": "one", "logicalType": "integer", "logicalTypeOptions": {"minimum": 0}}
FIELDS = [{"name": name, "logicalType": "string"} for name in ("a", "b", "c")]
MONEY = {"logicalType": "number", "physicalType": "decimal(20,2)"}

CASES: list[tuple[dict[str, Any], str, list[Any], list[Any]]] = [
    # what is declared, the rule's name behind the column's, good values, bad values
    (options("integer", minimum=5), "minimum", [5, 6], [4, -5]),
    (options("integer", maximum=5), "maximum", [5, -6], [6]),
    (options("number", exclusiveMinimum=1.5), "exclusiveMinimum", [1.6], [1.5, 1.4]),
    (options("number", exclusiveMaximum=1.5), "exclusiveMaximum", [1.4], [1.5, 1.6]),
    (options("date", minimum="2020-01-01"), "minimum", ["2020-01-01"], ["2019-12-31"]),
    (
        options("timestamp", maximum="2020-01-01T12:00:00Z"),
        "maximum",
        ["2020-01-01T12:00:00Z"],
        ["2020-01-01T12:00:01Z"],
    ),
    (options("integer", multipleOf=5), "multipleOf", [0, 10, -15], [3]),
    (
        {"physicalType": "string", **options("integer", minimum=5)},
        "minimum",
        ["5", "1e30"],
        ["4", "-1e30", "many", ""],
    ),
    (
        {"physicalType": "string", **options("number", maximum=9007199254740992)},
        "maximum",
        ["1.5", "9007199254740992"],
        ["9007199254740993", "many"],
    ),
    ({"physicalType": "string", **options("number", multipleOf=0.5)}, "multipleOf", ["1.5"], ["1.6", "many"]),
    (
        {"physicalType": "string", **options("date", minimum="2020-01-01")},
        "minimum",
        ["2020-01-01"],
        ["2019-12-31", "soon"],
    ),
    (options("number", multipleOf=0.01), "multipleOf", [19.99, 5.0], [19.995]),
    ({**MONEY, **options("number", multipleOf=0.5)}, "multipleOf", ["7.50"], ["7.55"]),
    (options("integer", format="u8"), "format", [0, 255], [-1, 256]),
    (options("integer", format="i16"), "format", [-32768, 32767], [-32769, 32768]),
    (options("integer", format="u64"), "format", [0, 2**63 - 1], [-1]),
    (options("string", minLength=3), "minLength", ["abc", "äöü", "abcdefghijklm"], ["ab", "äö", ""]),
    (options("string", maxLength=3), "maxLength", ["abc", "äöü", ""], ["abcd", "äöüß"]),
    (options("string", pattern="^[A-Z]{2}$"), "pattern", ["DE"], ["de", "DEU", ""]),
    (text("email"), "format", ["a@b.org", "x+y@sub.example.co"], ["a@b", "a b@c.de", "@b.org", "a@b.org\n"]),
    (
        text("uuid"),
        "format",
        ["123e4567-e89b-12d3-a456-426614174000"],
        ["123e4567-e89b-12d3-a456-42661417400", "123e4567e89b12d3a456426614174000"],
    ),
    (text("uri"), "format", ["https://a.org/b?c", "urn:isbn:1"], ["a.org/b", "https://a b", ":x"]),
    (
        text("hostname"),
        "format",
        ["a", "example.org", "x-1.a.b", "a" * 63],
        ["a..b", "-a.b", "a-.b", "a.", ".a", "a_b", "a" * 64, "a." * 127 + "ab"],
    ),
    (
        text("ipv4"),
        "format",
        ["1.2.3.4", "255.255.255.0"],
        ["1.2.3.4.", "1.2.3", "256.1.1.1", "1.2.3.4.5", "01.2.3.4", "1.2.3.4\n"],
    ),
    (
        text("ipv6"),
        "format",
        [
            "::",
            "::1",
            "1::",
            "2001:db8::1",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "::ffff:1.2.3.4",
            "1:2:3:4:5:6:1.2.3.4",
            "64:ff9b::1.2.3.4",
            "fe80::1%eth0",
            "1::8",
        ],
        [
            "face",
            "12345678",
            ":::::",
            ":",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "1::2::3",
            "12345::",
            "1:2:3:4:5:6:7::8",
            "::1.2.3.4.5",
            "1:2:3:4:5:6:7:1.2.3.4",
            ":1",
            "1:",
            "g::",
        ],
    ),
    (
        {"logicalType": "time"},
        "time",
        ["00:00", "23:59:59.5", "12:30:00Z", "12:30+01:00"],
        ["24:00", "12:60", "12", "noon", "12:30\n"],
    ),
    (
        {"logicalType": "string", "enum": [{"value": "x"}, {"value": "it's"}]},
        "enum",
        ["x", "it's"],
        ["X", ""],
    ),
    (metric("invalidValues", "integer", validValues=[1, 2]), "invalidValues", [1, 2], [3]),
    (metric("invalidValues", pattern="^a"), "invalidValues", ["ab"], ["ba"]),
    (metric("nullValues"), "nullValues", ["", "x"], [None]),
    (metric("missingValues"), "missingValues", ["x"], [None, ""]),
    (metric("missingValues", missingValues=["n/a", "-"]), "missingValues", ["x", ""], ["n/a", "-", None]),
    (
        {"logicalType": "array", "items": NUMBERS, "logicalTypeOptions": {"minItems": 1}},
        "minItems",
        [[1]],
        [[]],
    ),
    (
        {"logicalType": "array", "items": NUMBERS, "logicalTypeOptions": {"maxItems": 2}},
        "maxItems",
        [[1, 2], []],
        [[1, 2, 3]],
    ),
    (
        {"logicalType": "array", "items": NUMBERS, "logicalTypeOptions": {"uniqueItems": True}},
        "uniqueItems",
        [[1, 2], []],
        [[1, 1], [None, None]],
    ),
    (
        {"logicalType": "array", "items": NUMBERS},
        "element.minimum",
        [[0, 1], [None], []],
        [[1, -1], [None, -1]],
    ),
    (
        {"logicalType": "array", "items": metric("nullValues")},
        "element.nullValues",
        [["a"], []],
        [["a", None]],
    ),
    (
        {
            "logicalType": "map",
            "map": {"key": options("string", maxLength=2), "value": {"logicalType": "integer"}},
        },
        "key.maxLength",
        [{"de": 1}, {}],
        [{"de": 1, "deu": 2}],
    ),
    (
        {"logicalType": "map", "map": {"key": {"logicalType": "string"}, "value": NUMBERS}},
        "value.minimum",
        [{"de": 1, "fr": None}],
        [{"de": 1, "fr": -1}],
    ),
    (
        {"logicalType": "object", "properties": [NUMBERS]},
        "one.minimum",
        [{"one": 0}, {"one": None}],
        [{"one": -1}],
    ),
    (
        {
            "logicalType": "array",
            "items": {"logicalType": "object", "properties": [{**metric("nullValues"), "name": "a"}]},
        },
        "element.a.nullValues",
        [[{"a": "x"}], [None]],
        [[{"a": "x"}, {"a": None}]],
    ),
    (
        {"logicalType": "object", "properties": FIELDS, "logicalTypeOptions": {"minProperties": 2}},
        "minProperties",
        [{"a": "x", "c": "y"}],
        [{"a": "x"}],
    ),
    (
        {"logicalType": "object", "properties": FIELDS, "logicalTypeOptions": {"maxProperties": 2}},
        "maxProperties",
        [{"a": "x", "c": "y"}],
        [{"a": "x", "b": "y", "c": "z"}],
    ),
    (
        {"logicalType": "object", "properties": FIELDS, "logicalTypeOptions": {"required": ["a", "b"]}},
        "required",
        [{"a": "x", "b": "y"}],
        [{"a": "x", "c": "y"}],
    ),
    (
        {"logicalType": "vector", "logicalTypeOptions": {"dimensions": 2}},
        "dimensions",
        [[1, 2]],
        [[1], [1, 2, 3]],
    ),
    (
        {
            "logicalType": "integer",
            "quality": [
                {"type": "custom", "engine": "esker", "implementation": "{me} % 2 = 0", "name": "even"}
            ],
        },
        "even",
        [2],
        [3],
    ),
]
SEES_NULL = ("nullValues", "missingValues")


def name(index: int) -> str:
    return f"c{index}"


def write_contract(path: Path) -> None:
    properties = []
    for index, (declared, _, _, _) in enumerate(CASES):
        own = json.loads(json.dumps(declared).replace("{me}", name(index)))
        properties.append({"name": name(index), **own})
    head = {"apiVersion": "v3.2.0", "kind": "DataContract", "id": "all", "version": "1.0.0"}
    path.write_text(json.dumps({**head, "schema": [{"name": "all", "properties": properties}]}))


def test_every_kind(folder: Folder) -> None:
    """A value breaks the rule that it is meant to break, and nothing else; a good one breaks none."""
    write_contract(folder.path / "all.json")
    contract = read_contract(folder.path / "all.json", "all.json", "shop.all")
    usual = {name(index): good[0] for index, (_, _, good, _) in enumerate(CASES)}
    rows: list[dict[str, Any]] = []
    wanted: list[list[str]] = []
    for index, (_, rule, good, bad) in enumerate(CASES):
        rows += [{**usual, name(index): value} for value in (*good, *bad)]
        full = rule if rule == "even" else f"{name(index)}.{rule}"
        wanted += [[]] * len(good) + [[full]] * len(bad)
    rows.append({})
    wanted.append([f"{name(i)}.{case[1]}" for i, case in enumerate(CASES) if case[1] in SEES_NULL])

    columns = tuple(each.column for each in contract.columns)
    schema = ", ".join(f"{quoted(column.name)} {ddl(column.type)}" for column in columns)
    spark = folder.open().engine.spark
    sent = spark.createDataFrame([(json.dumps(row),) for row in rows], "record string").coalesce(1)
    frame = sent.selectExpr(f"inline(array(from_json(record, '{schema}', map('mode', 'FAILFAST'))))")
    checked = check(frame, columns, RowRules.of(contract), SIDE_COLUMNS, ())
    found = [row[BAD] for row in checked.all_told().select(BAD).collect()]

    assert len(found) == len(rows)
    broken = [list(why["rules"]) if why is not None else [] for why in found]
    differing = [
        (row, want, have) for row, want, have in zip(rows, wanted, broken, strict=True) if want != have
    ]
    assert not [({k: v for k, v in row.items() if v != usual[k]}, w, h) for row, w, h in differing]
    assert all(why["reason"].startswith("column ") for why in found if why and why["rules"] != ["even"])


def test_no_kind_is_left_out() -> None:
    """What a contract's options can ask for is in the list above."""
    asked = {key for declared, _, _, _ in CASES for key in declared.get("logicalTypeOptions", ())}
    options_known = {each[0] for each in (*type_options._COMPARED, *type_options._COUNTED)}
    assert options_known <= asked
    texts = {declared.get("logicalTypeOptions", {}).get("format") for declared, _, _, _ in CASES}
    assert set(type_options._FORMATS) <= texts
