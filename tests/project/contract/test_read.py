# ruff: noqa: E501
"""Contract files: what is read from them, and what is said of mistakes in them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from esker.project.contract import Contract, UnreadableContract, read_contract
from esker.project.contract.model import Amount, Audit, Bound, PluggedIn, Reference, RowRule, Unique
from esker.project.types import Array, Column, Map, Plain, Struct, parse_type

HEAD = """\
apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.2.0
status: active
schema:
  - name: orders
    properties:
"""


def read(tmp_path: Path, properties: str, *, table: str = "", after: str = "", head: str = HEAD) -> Contract:
    text = head + indented(properties, 6) + indented(table, 4) + after
    (tmp_path / "orders.odcs.yaml").write_text(text)
    return read_contract(tmp_path / "orders.odcs.yaml", "orders.odcs.yaml", "shop.orders")


def indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in dedent(text).strip().splitlines())


def mistakes(tmp_path: Path, properties: str, **more: Any) -> list[str]:
    with pytest.raises(UnreadableContract) as caught:
        read(tmp_path, properties, **more)
    return [str(problem) for problem in caught.value.problems]


def rule(contract: Contract, name: str) -> Any:
    found = {each.name: each for each in (*contract.rules, *contract.audits)}
    return found[name]


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("logicalType: string", "string"),
        ("logicalType: integer", "bigint"),
        ("logicalType: integer\n  logicalTypeOptions: {format: i32}", "int"),
        ("logicalType: number", "double"),
        ("logicalType: number\n  physicalType: DECIMAL(12,2)", "decimal(12,2)"),
        ("logicalType: boolean", "boolean"),
        ("logicalType: date", "date"),
        ("logicalType: timestamp", "timestamp"),
        ("logicalType: timestamp\n  logicalTypeOptions: {timezone: false}", "timestamp_ntz"),
        ("logicalType: array\n  items: {name: item, logicalType: string}", "array<string>"),
        ("physicalType: VARCHAR(20)", "string"),
        (
            "physicalType: 'map<string, struct<a: int, b: array<date>>>'",
            "map<string,struct<a:int,b:array<date>>>",
        ),
        ("logicalType: string\n  physicalType: GEOGRAPHY", "string"),
        (
            "logicalType: object\n  properties:\n"
            "    - {name: city, logicalType: string}\n    - {name: zip, logicalType: integer}",
            "struct<city:string,zip:bigint>",
        ),
    ],
)
def test_types(tmp_path: Path, declared: str, kind: str) -> None:
    contract = read(tmp_path, f"- name: it\n  {declared}")
    assert str(contract.columns[0].column.type) == kind


@pytest.mark.parametrize(
    ("spelled", "inside", "kind"),
    [
        (
            "struct<city: string, zip: string>",
            "properties: [{name: town, physicalName: CITY, logicalType: string, required: true, description: Where}]",
            "struct<city:string NOT NULL,zip:string>",
        ),
        (
            "array<struct<city: string, zip: string NOT NULL>>",
            "items: {logicalType: object, properties: [{name: city, logicalType: string, required: true, description: Where}]}",
            "array<struct<city:string NOT NULL,zip:string NOT NULL>>",
        ),
        (
            "map<string, struct<city: string, zip: string>>",
            "map: {key: {logicalType: string}, value: {logicalType: object, properties: [{name: city, logicalType: string, required: true, description: Where}]}}",
            "map<string,struct<city:string NOT NULL,zip:string>>",
        ),
        (
            "map<string, array<struct<city: string, zip: string>>>",
            "map: {key: {logicalType: string}, value: {logicalType: array, required: true, items: {logicalType: object, required: true, properties: [{name: city, logicalType: string, description: Where}]}}}",
            "map<string,array<struct<city:string,zip:string> NOT NULL> NOT NULL>",
        ),
    ],
)
@pytest.mark.parametrize(
    "said", ["physicalType: '{}'", "customProperties: [{{property: icebergType, value: '{}'}}]"]
)
def test_what_is_said_inside_a_type_that_is_spelled_out(
    tmp_path: Path, said: str, spelled: str, inside: str, kind: str
) -> None:
    """The spelled type gives names and types; the properties say what is required, and what it is."""
    logical = {"p": "object", "i": "array", "m": "map"}[inside[0]]
    text = f"- name: it\n  logicalType: {logical}\n  {said.format(spelled)}\n  {inside}"
    found = read(tmp_path, text).columns[0].column.type
    assert str(found) == kind
    match found:
        case Array(Struct(fields)) | Map(_, Struct(fields) | Array(Struct(fields))) | Struct(fields):
            assert [field.doc for field in fields] == ["Where", None]


def test_what_is_said_inside_reaches_the_pipeline(tmp_path: Path) -> None:
    """Descriptions and requirements at any depth; Iceberg has no place for those of elements and values."""
    contract = read(
        tmp_path,
        """
        - name: tags
          logicalType: array
          description: What it is about
          items: {logicalType: string, required: true, description: "One word's worth"}
        - name: names
          logicalType: map
          map:
            key: {logicalType: string, description: A language}
            value:
              logicalType: object
              required: true
              properties:
                - {name: given name, logicalType: string, required: true, description: "As it's said:\\nfirst \\\\ second"}
        """,
    )
    declared = contract.as_declared()["columns"]
    assert {name: column["doc"] for name, column in declared.items()} == {
        "tags": "What it is about; element: One word's worth",
        "names": "key: A language",
    }
    assert {name: parse_type(column["type"]) for name, column in declared.items()} == {
        "tags": Array(Plain("string"), element_required=True),
        "names": Map(
            Plain("string"),
            Struct(
                (Column("given name", Plain("string"), True, "As it's said:\nfirst \\ second"),),
            ),
            value_required=True,
        ),
    }


def test_columns(tmp_path: Path) -> None:
    contract = read(
        tmp_path,
        """
        - {name: id, physicalName: order_id, logicalType: string, primaryKey: true, description: Its number}
        - {name: email, logicalType: string, classification: personal, tags: [contact]}
        - {name: total, logicalType: number, required: true}
        """,
    )
    [key, email, total] = contract.columns
    assert (key.name, key.column.required, key.column.doc) == ("order_id", True, "Its number")
    assert (email.classification, email.tags, email.column.required) == ("personal", ("contact",), False)
    assert total.column.required
    assert contract.key == ("order_id",)
    assert rule(contract, "primary_key") == Unique("primary_key", ("order_id",))
    assert (contract.version, contract.status, contract.is_draft) == ("1.2.0", "active", False)


def test_layout(tmp_path: Path) -> None:
    contract = read(
        tmp_path,
        """
        - name: id
          logicalType: string
          partitioned: true
          partitionKeyPosition: 2
          customProperties:
            - {property: partitionTransform, value: bucket(16)}
            - {property: bloomFilter, value: true}
        - name: at
          logicalType: timestamp
          partitioned: true
          partitionKeyPosition: 1
          customProperties:
            - {property: partitionTransform, value: day}
            - {property: sortPosition, value: 1}
            - {property: sortDirection, value: desc}
        """,
        table="""
        customProperties:
          - {property: compression, value: snappy}
          - {property: targetFileSize, value: 64MB}
          - {property: formatVersion, value: 3}
          - {property: tableProperties, value: {write.metadata.metrics.default: full}}
          - {property: compression, value: ignored, vendor: other}
        """,
    )
    assert contract.partition_by == ("day(at)", "bucket(16, id)")
    assert contract.sort_by == ("at desc",)
    assert contract.format_version == 3
    assert contract.properties == {
        "write.parquet.compression-codec": "snappy",
        "write.target-file-size-bytes": "64000000",
        "write.parquet.bloom-filter-enabled.column.id": "true",
        "write.metadata.metrics.default": "full",
    }


@pytest.mark.parametrize(
    ("declared", "name", "condition", "why"),
    [
        ("logicalType: integer\n  logicalTypeOptions: {minimum: 0}", "it.minimum", "`it` >= 0", "is less than 0"),
        ("logicalType: number\n  logicalTypeOptions: {exclusiveMaximum: 1.5}", "it.exclusiveMaximum", "`it` < 1.5", "is not less than 1.5"),
        ("logicalType: integer\n  logicalTypeOptions: {multipleOf: 5}", "it.multipleOf", "TRY_CAST(`it` AS DECIMAL(38,18)) % CAST('5' AS DECIMAL(38,18)) = 0", "is no multiple of 5"),
        ("logicalType: string\n  logicalTypeOptions: {maxLength: 3}", "it.maxLength", "(octet_length(`it`) <= 3 OR char_length(`it`) <= 3)", "is longer than 3 characters"),
        ("logicalType: string\n  logicalTypeOptions: {pattern: \"^'a\\\\d$\"}", "it.pattern", r"`it` RLIKE '^\'a\\d$'", r"does not match ^'a\d$"),
        ("logicalType: date\n  logicalTypeOptions: {minimum: '2020-01-01'}", "it.minimum", "`it` >= DATE '2020-01-01'", "is less than 2020-01-01"),
        ("logicalType: string\n  quality:\n    - {metric: invalidValues, mustBe: 0, arguments: {validValues: [a, b]}}", "it.invalidValues", "`it` IN ('a', 'b')", "is none of a, b"),
        ("logicalType: string\n  quality:\n    - {metric: nullValues, mustBe: 0, name: filled}", "filled", "`it` IS NOT NULL", "has no value"),
        ("logicalType: string\n  quality:\n    - {type: custom, engine: esker, implementation: length(it) > 1, name: long}", "long", "length(it) > 1", "breaks length(it) > 1"),
        ("logicalType: array\n  items: {name: each, logicalType: integer, logicalTypeOptions: {minimum: 1}}", "it.element.minimum", "forall(`it`, e1 -> coalesce(e1 >= 1, true))", "is less than 1"),
        ("logicalType: map\n  map: {key: {logicalType: string, logicalTypeOptions: {maxLength: 2}}, value: {logicalType: integer}}", "it.key.maxLength", "forall(map_keys(`it`), e1 -> coalesce((octet_length(e1) <= 2 OR char_length(e1) <= 2), true))", "is longer than 2 characters"),
        ("logicalType: map\n  map: {key: {logicalType: string}, value: {logicalType: array, items: {logicalType: integer, logicalTypeOptions: {minimum: 1}}}}", "it.value.element.minimum", "forall(map_values(`it`), e1 -> coalesce(forall(e1, e2 -> coalesce(e2 >= 1, true)), true))", "is less than 1"),
        ("logicalType: integer\n  logicalTypeOptions: {format: u64}", "it.format", "`it` BETWEEN 0L AND 9223372036854775807L", "is no u64"),
        ("logicalType: integer\n  physicalType: decimal(20,0)\n  logicalTypeOptions: {format: u64}", "it.format", "`it` BETWEEN 0BD AND 18446744073709551615BD", "is no u64"),
        ("logicalType: integer\n  physicalType: decimal(38,0)\n  logicalTypeOptions: {format: u128}", "it.format", f"`it` BETWEEN 0BD AND {'9' * 38}BD", "is no u128"),
        ("logicalType: time", "it.time", "`it` RLIKE '^([01]\\\\d|2[0-3]):[0-5]\\\\d(:[0-5]\\\\d(\\\\.\\\\d+)?)?(Z|[+-]\\\\d\\\\d:?\\\\d\\\\d)?\\\\z'", "is no time of day"),
    ],
)  # fmt: skip
def test_row_rules(tmp_path: Path, declared: str, name: str, condition: str, why: str) -> None:
    found = rule(read(tmp_path, f"- name: it\n  {declared}"), name)
    assert isinstance(found, RowRule)
    assert (found.condition, found.why, found.severity) == (condition, why, "error")


def test_severities(tmp_path: Path) -> None:
    """Of all rules of a column, of some of them, and of a relationship."""
    contract = read(
        tmp_path,
        """
        - name: a
          logicalType: string
          unique: true
          logicalTypeOptions: {pattern: ^x, minLength: 2}
          customProperties: [{property: severity, value: warning}]
        - name: b
          logicalType: integer
          required: true
          logicalTypeOptions: {minimum: 0, maximum: 9}
          customProperties: [{property: severity, value: {maximum: warning}}]
        - name: c
          logicalType: string
          relationships: [{to: shop.others.id, customProperties: [{property: severity, value: warning}]}]
          quality: [{metric: nullValues, mustBe: 0}]
        """,
    )
    assert {each.name: each.severity for each in contract.rules} == {
        "a.minLength": "warning",
        "a.pattern": "warning",
        "a.unique": "warning",
        "b.minimum": "error",
        "b.maximum": "warning",
        "c.reference": "warning",
        "c.nullValues": "error",
    }


@pytest.mark.parametrize(
    ("declared", "note"),
    [
        ("logicalType: integer\n  physicalType: string\n  logicalTypeOptions: {format: u8}", 'it: format "u8" of a text is not checked'),
        ("logicalType: string\n  logicalTypeOptions: {format: iban}", 'it: format "iban" is not checked'),
        ("physicalType: 'struct<a: int>'\n  logicalType: object\n  logicalTypeOptions: {maxProperties: 2}", "it: maxProperties is not checked"),
        ("logicalType: timestamp\n  logicalTypeOptions: {defaultTimezone: Europe/Berlin}", 'it: defaultTimezone "Europe/Berlin" is not checked'),
    ],
)  # fmt: skip
def test_options_that_nobody_checks(tmp_path: Path, declared: str, note: str) -> None:
    """They are told, by every plan."""
    assert read(tmp_path, f"- name: it\n  {declared}").notes == (note,)


def test_enum_of_the_newest_standard(tmp_path: Path) -> None:
    head = HEAD.replace("v3.1.0", "v3.2.0")
    contract = read(tmp_path, "- {name: it, logicalType: string, enum: [{value: x}, {value: y}]}", head=head)
    assert rule(contract, "it.enum").condition == "`it` IN ('x', 'y')"


def test_rules_of_other_kinds(tmp_path: Path) -> None:
    contract = read(
        tmp_path,
        """
        - name: email
          logicalType: string
          unique: true
          customProperties: [{property: holdAbove, value: 2%}]
        - name: customer
          logicalType: string
          relationships: [{to: shop.customers.id}]
          quality:
            - {metric: nullValues, mustBeLessThan: 5, unit: percent}
            - {metric: missingValues, mustBe: 0, severity: warning, arguments: {missingValues: [n/a]}}
            - {type: custom, engine: pandera, implementation: {check: it}, name: outside}
        """,
        table="""
        quality:
          - {metric: rowCount, mustBeGreaterThan: 10}
          - {metric: duplicateValues, mustBe: 0, arguments: {properties: [email, customer]}, name: pairs}
          - {type: sql, name: total, query: "select count(*) from ${table}", mustBe: 3}
          - {type: custom, engine: esker, implementation: {rowCountChange: {against: weekday, mustBeBetween: [-10, 50]}}}
        """,
        after="slaProperties: [{property: latency, value: 2, unit: h, element: orders.email}]\n",
    )
    assert rule(contract, "email.unique").limits.hold_above == Amount(0.02, is_share=True)
    assert rule(contract, "customer.reference") == Reference(
        "customer.reference", ("customer",), "shop.customers", ("id",)
    )
    assert rule(contract, "customer.nullValues").bound == Bound("mustBeLessThan", 5, is_percent=True)
    missing = rule(contract, "customer.missingValues")
    assert (missing.severity, missing.bound) == ("warning", None)
    assert missing.condition == "`customer` IS NOT NULL AND `customer` NOT IN ('n/a')"
    assert isinstance(rule(contract, "outside"), PluggedIn)
    assert rule(contract, "rowCount") == Audit(
        "rowCount", "row_count", Bound("mustBeGreaterThan", 10), file="orders.odcs.yaml", line=21
    )
    assert rule(contract, "pairs") == Unique("pairs", ("email", "customer"))
    assert rule(contract, "total").query == "select count(*) from {table}"
    assert rule(contract, "row_count_change.weekday").against == "weekday"
    assert rule(contract, "email.freshness").bound == Bound("mustBeLessOrEqualTo", 120)


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ("logicalType: string\n  requiredd: true", '11:9: schema.0.properties.0.requiredd: unknown key "requiredd"; did you mean "required"?'),
        ("logicalType: strin", '10:9: schema.0.properties.0.logicalType: "strin" is not known here; did you mean "string"?'),
        ("logicalType: integer\n  logicalTypeOptions: {minimun: 0}", 'unknown key "minimun"; did you mean "minimum"?'),
        ("logicalType: string\n  required: perhaps", '11:9: schema.0.properties.0.required: expected true or false, found "perhaps"'),
        ("physicalType: int\n  logicalTypeOptions: {minimum: 1, maximum: 9}", "11:9: schema.0.properties.0.logicalTypeOptions: which options there are depends on logicalType:"),
        ("description: no type", "the column has no type; write logicalType: or physicalType:"),
        ("physicalType: GEOGRAPHY", 'unknown type "geography"'),
        ("physicalType: TIME(6)", "10:9: schema.0.properties.0.physicalType: Spark reads and writes no columns of type time; write string"),
        ("logicalType: time\n  customProperties: [{property: icebergType, value: time}]", "11:52: schema.0.properties.0.customProperties.0.value: Spark reads and writes no columns of type time; write string"),
        ("logicalType: array\n  items: {physicalType: 'struct<a: time>'}", "11:17: schema.0.properties.0.items.physicalType: Spark reads and writes no columns of type time; write string"),
        ("logicalType: array", "an array needs items:"),
        ("physicalType: 'struct<a: int>'\n  properties: [{name: b, logicalType: string}]", 'type struct<a:int> has no field "b"'),
        ("logicalType: integer\n  logicalTypeOptions: {minimum: 5, maximum: 1}", "minimum is more than maximum: no value can be both"),
        ("logicalType: integer\n  logicalTypeOptions: {minimum: 5, exclusiveMaximum: 5}", "minimum is not less than exclusiveMaximum"),
        ("logicalType: string\n  logicalTypeOptions: {minLength: 5, maxLength: 1}", "minLength is more than maxLength"),
        ("logicalType: string\n  quality: [{metric: nullValues}]", "one operator is needed"),
        ("logicalType: string\n  quality: [{metric: nullValue, mustBe: 0}]", 'did you mean "nullValues"?'),
        ("logicalType: string\n  quality: [{metric: invalidValues, mustBe: 0}]", "invalidValues needs arguments:"),
        ("logicalType: string\n  quality: [{metric: invalidValues, mustBe: 0, arguments: {validValues: []}}]", "no value at all is allowed here"),
        ("logicalType: string\n  quality: [{metric: nullValues, mustBe: 0, severity: bad}]", 'severity "bad" is not known'),
        ("logicalType: string\n  quality: [{metric: invalidValues, mustBe: 0, arguments: {validValues: abc}}]", "11:66: schema.0.properties.0.quality.0.arguments.validValues: a list of values is needed here"),
        ("logicalType: string\n  quality: [{metric: invalidValues, mustBe: 0, arguments: {validValues: }}]", "a list of values is needed here"),
        ("logicalType: string\n  quality: [{metric: invalidValues, mustBe: 0, arguments: {validValues: 3}}]", "a list of values is needed here"),
        ("logicalType: string\n  quality: [{metric: invalidValues, mustBe: 0, arguments: {validValues: [[a]]}}]", "is no value that a column can have"),
        ("logicalType: string\n  quality: [{metric: invalidValues, mustBe: 0, arguments: {validValues: [.inf]}}]", '"inf" is no value that a column can have'),
        ("logicalType: integer\n  logicalTypeOptions: {maximum: .inf}", "11:30: schema.0.properties.0.logicalTypeOptions.maximum: maximum must be a finite number"),
        ("logicalType: integer\n  logicalTypeOptions: {minimum: .nan}", "minimum must be a finite number"),
        ("logicalType: number\n  logicalTypeOptions: {maximum: .inf}", "maximum must be a finite number"),
        ("logicalType: number\n  logicalTypeOptions: {multipleOf: 1.0e-30}", "multipleOf must be at least 1e-18"),
        ("logicalType: string\n  quality: [{metric: nullValues, mustBeLessThan: .inf}]", "mustBeLessThan: a number is needed"),
        ("logicalType: string\n  quality: [{metric: nullValues, mustBe: none}]", "mustBe: a number is needed"),
        ("logicalType: string\n  quality: [{metric: duplicateValues, mustBe: 0, arguments: {properties: [itt]}}]", 'names a column "itt" that is not there; did you mean "it"?'),
        ("logicalType: string\n  customProperties: [{property: holdAbove, value: much}]\n  unique: true", "holdAbove must be a share such as 5%"),
        ("logicalType: string\n  partitioned: true\n  customProperties: [{property: partitionTransform, value: week}]", 'unknown transform "week"'),
        ("logicalType: string\n  relationships: [{to: customers}]", "write to: table.column"),
        ("logicalType: string\n  required: true\n  customProperties: [{property: severity, value: {required: warning}}]", "12:49: schema.0.properties.0.customProperties.0.value: required is always an error: the table stores no row without"),
        ("logicalType: string\n  customProperties: [{property: severity, value: {type: warning}}]", "type is always an error: a value of another type cannot be stored"),
        ("logicalType: string\n  primaryKey: true\n  customProperties: [{property: severity, value: warning}]", "the column has no rule that can be a warning; rows are told apart by it"),
        ("logicalType: string\n  unique: true\n  primaryKey: true\n  customProperties: [{property: severity, value: {unique: warning}}]", "unique is always an error: rows are told apart by it"),
        ("logicalType: integer\n  logicalTypeOptions: {minimum: 0}\n  customProperties: [{property: severity, value: {minimun: warning}}]", 'the column has no rule "minimun"; did you mean "minimum"?'),
        ("logicalType: integer\n  logicalTypeOptions: {minimum: 0}\n  customProperties: [{property: severity, value: bad}]", 'severity "bad" is not known'),
        ("logicalType: object\n  logicalTypeOptions: {required: [b]}\n  properties: [{name: a, logicalType: string}]", 'there is no field "b"'),
    ],
)  # fmt: skip
def test_mistakes(tmp_path: Path, declared: str, told: str) -> None:
    [found] = mistakes(tmp_path, f"- name: it\n  {declared}")
    assert told in found
    assert found.startswith("orders.odcs.yaml:")


ONLY = "quality: [{{metric: invalidValues, mustBe: 0, arguments: {{validValues: [{}]}}}}]"


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ("logicalType: integer\n  logicalTypeOptions: {minimum: 5}\n  " + ONLY.format("1, 2"), "12:66: schema.0.properties.0.quality.0.arguments.validValues: minimum 5 leaves none of 1, 2: no value can keep to all rules"),
        ("logicalType: string\n  logicalTypeOptions: {pattern: '^[A-Z]+$'}\n  " + ONLY.format("a, b"), "pattern ^[A-Z]+$ leaves none of a, b"),
        ("logicalType: string\n  logicalTypeOptions: {maxLength: 2}\n  " + ONLY.format("DEU"), "maxLength 2 leaves none of DEU"),
        ("logicalType: integer\n  " + ONLY.format("abc"), "logicalType integer leaves none of abc"),
        ("logicalType: date\n  logicalTypeOptions: {maximum: 2020-01-01}\n  " + ONLY.format("2021-01-01"), "maximum 2020-01-01 leaves none of 2021-01-01"),
        ("logicalType: string\n  quality: [{metric: invalidValues, mustBe: 0, arguments: {validValues: [a, b]}}, {metric: invalidValues, mustBe: 0, arguments: {validValues: [c]}}]", "invalidValues leaves none of c"),
        ("logicalType: integer\n  logicalTypeOptions: {exclusiveMinimum: 1, exclusiveMaximum: 2}", "no whole number lies between these bounds"),
        ("logicalType: string\n  quality: [{metric: nullValues, mustBeLessThan: 0}]", "nullValues must be less than 0: no number of rows can be that"),
        ("logicalType: string\n  quality: [{metric: nullValues, mustBeGreaterThan: 100, unit: percent}]", "nullValues must be greater than 100 %: no share of rows can be that"),
    ],
)  # fmt: skip
def test_contradictions(tmp_path: Path, declared: str, told: str) -> None:
    """Rules that no value, or no number of rows, can keep to together."""
    [found] = mistakes(tmp_path, f"- name: it\n  {declared}")
    assert told in found


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        (
            "mustBeGreaterThan: 10|mustBeLessThan: 5",
            "rowCount must be greater than 10 and must be less than 5: no",
        ),
        ("mustBeGreaterThan: 5|mustBeLessThan: 6", "no number of rows can be that"),
        ("mustBe: 3|mustNotBe: 3", "no number of rows can be that"),
        ("mustBeLessThan: 0", "rowCount must be less than 0: no number of rows can be that"),
        ("mustBeBetween: [1, 9]|mustNotBeBetween: [0, 20]", "no number of rows can be that"),
        ("mustBeGreaterThan: 5|mustBeLessThan: 7", None),
        ("mustBeBetween: [1, 9]|mustNotBeBetween: [2, 20]", None),
        ("mustBeGreaterThan: 10|mustBeLessThan: 5, severity: warning", None),
    ],
)
def test_contradictory_counts(tmp_path: Path, counts: str, told: str | None) -> None:
    table = "quality:\n" + "".join(f"  - {{metric: rowCount, {each}}}\n" for each in counts.split("|"))
    column = "- {name: it, logicalType: string}"
    if told is None:
        assert read(tmp_path, column, table=table).audits
        return
    [found] = mistakes(tmp_path, column, table=table)
    assert told in found
    assert found.startswith(f"orders.odcs.yaml:{10 + len(counts.split('|'))}:")


@pytest.mark.parametrize(
    "declared",
    [
        "logicalType: integer\n  logicalTypeOptions: {minimum: 2}\n  " + ONLY.format("1, 2"),
        "logicalType: string\n  logicalTypeOptions: {pattern: '^\\p{Lu}+$'}\n  " + ONLY.format("a"),
        "logicalType: boolean\n  " + ONLY.format("true"),
        "logicalType: integer\n  logicalTypeOptions: {minimum: 5}\n  customProperties: [{property: severity, value: warning}]\n  " + ONLY.format("1"),
        "logicalType: number\n  logicalTypeOptions: {exclusiveMinimum: 1, exclusiveMaximum: 2}\n  " + ONLY.format("1.5"),
        "logicalType: timestamp\n  logicalTypeOptions: {minimum: '2020-01-01'}\n  " + ONLY.format("'2020-01-01T00:00:00Z'"),
        "logicalType: boolean\n  physicalType: varchar(1)\n  " + ONLY.format("'Y', 'N'"),
        "logicalType: date\n  physicalType: string\n  " + ONLY.format("'31.12.2024'"),
        "logicalType: date\n  customProperties: [{property: icebergType, value: string}]\n  " + ONLY.format("'31.12.2024'"),
        "logicalType: integer\n  physicalType: string\n  logicalTypeOptions: {minimum: 5}\n  " + ONLY.format("A1, B2"),
        "physicalType: 'array<string>'\n  logicalType: array\n  items: {logicalType: integer, " + ONLY.format("A1, B2") + "}",
        "physicalType: 'struct<A: string>'\n  logicalType: object\n  properties: [{name: a, logicalType: integer, " + ONLY.format("A1, B2") + "}]",
        "physicalType: 'map<string, string>'\n  logicalType: map\n  map: {key: {logicalType: integer, " + ONLY.format("A1") + "}, value: {logicalType: date, " + ONLY.format("B2") + "}}",
        "logicalType: integer\n  physicalType: decimal(10,2)\n  logicalTypeOptions: {exclusiveMinimum: 1, exclusiveMaximum: 2}\n  " + ONLY.format("1.5"),
        "logicalType: number\n  quality: [{metric: invalidValues, mustBe: 0, arguments: {validValues: [1, 2]}}, {metric: invalidValues, mustBe: 0, arguments: {validValues: [1.0, 3.0]}}]",
        "logicalType: date\n  " + ONLY.format("'2024-1-5'"),
        "logicalType: date\n  logicalTypeOptions: {minimum: '2024-1-5', maximum: '2024-01-10'}\n  " + ONLY.format("'2024-01-7'"),
        "logicalType: boolean\n  " + ONLY.format("'yes'"),
        "logicalType: string\n  logicalTypeOptions: {pattern: '^[A-Z&&[^IO]]{2}$'}\n  " + ONLY.format("AB"),
        "logicalType: string\n  logicalTypeOptions: {pattern: '^[a-c[x-z]]$'}\n  " + ONLY.format("x"),
        "logicalType: string\n  logicalTypeOptions: {pattern: '^\\W$'}\n  " + ONLY.format("é"),
        "logicalType: string\n  logicalTypeOptions: {minLength: 3}\n  " + ONLY.format("1"),
    ],
)  # fmt: skip
def test_rules_that_go_together(tmp_path: Path, declared: str) -> None:
    assert read(tmp_path, f"- name: it\n  {declared}").rules


def test_column_twice(tmp_path: Path) -> None:
    [found] = mistakes(tmp_path, "- {name: it, logicalType: string}\n- {name: IT, logicalType: string}")
    assert found == 'orders.odcs.yaml:10:10: schema.0.properties.1.name: column "IT" stands there twice'


@pytest.mark.parametrize("version", ["v2.2.2", "v4.0.0"])
def test_versions_that_are_not_read(tmp_path: Path, version: str) -> None:
    head = HEAD.replace("v3.1.0", version)
    [found] = mistakes(tmp_path, "- {name: it, logicalType: string}", head=head)
    assert (
        found
        == f'orders.odcs.yaml:1:1: apiVersion: version "{version}" of the standard is not known; Esker reads v3.0.0 to v3.2.0'
    )


def test_no_table(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(HEAD.partition("schema:")[0])
    with pytest.raises(UnreadableContract, match="describes no table"):
        read_contract(tmp_path / "c.yaml", "c.yaml", "shop.orders")


def test_one_of_several_tables(tmp_path: Path) -> None:
    more = """
    - name: returns
      physicalName: shop.returned
      properties: [{name: b, logicalType: string}]
    """
    contract = read(tmp_path, "- {name: a, logicalType: string}", after=indented(more, 2))
    assert contract.columns[0].name == "a"
    path = tmp_path / "orders.odcs.yaml"
    assert read_contract(path, "x", "shop.returned").columns[0].name == "b"
    assert read_contract(path, "x", "other.table", "returns").columns[0].name == "b"
    with pytest.raises(UnreadableContract, match="several tables"):
        read_contract(path, "x", "other.table")
    with pytest.raises(UnreadableContract, match='did you mean "returns"'):
        read_contract(path, "x", "other.table", "return")
