"""What Arrow says of rows is what Spark says of them: over values and rules made to tell the two apart."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from decimal import Decimal as Number
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from esker.contracts.arrow_check import surely_keep
from esker.contracts.arrow_pattern import as_re2
from esker.contracts.rules import RowRules, broken_sql
from esker.engine.compat import from_arrow, to_arrow
from esker.project.contract import read_contract
from esker.project.contract.model import RowRule
from tests.contracts.folder import FILE
from tests.folder import Folder

INTS = [0, 1, -1, 5, 6, 7, 127, 128, 255, 256, 2**31 - 1, -(2**31)]
LONGS = [*INTS, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 10**16, 10**16 + 1, 10**16 - 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.1, -0.1, 1.5, -1.5, 1e-5, 5e-324, 2.0**53, 1e16, 1e300, -1e300]
FLOATS += [float("nan"), float("inf"), float("-inf")]
BOUNDS: list[Any] = [
    0,
    1,
    -1,
    5,
    1.5,
    -1.5,
    0.1,
    1e-5,
    1e16,
    2**53,
    2**53 + 1,
    2**63,
    -(2**63),
    10**37,
    1e300,
]
TEXTS = ["", "a", "A", " ", "  a", "a ", "DE", "de", "DE\n", "DE\r\n", "DE\u0085", "DE\u2028", "\nDE", "D\nE"]
TEXTS += ["äöü", "a\u0308", "ß", "ſ", "K", "İ", "٣", "12", "1.5", "-", "\t", "\x0b", "\x0c", "\x00", "\ufeff"]
TEXTS += [
    "😀",
    "😀😀",
    "日本語",
    "\U0010ffff",
    "a@b.org",
    "a@b.org\n",
    "a b@c.de",
    "x" * 300,
    "it's",
    "\\d",
    "a\\",
]
TEXTS += ["12:30", "12:30\n", "24:00", "1.2.3.4", "1.2.3.4\n", "256.1.1.1", "null", "NULL", "n/a", "\u00a0"]
TEXTS += [
    "123e4567-e89b-12d3-a456-426614174000",
    "a.b",
    "a\rb",
    "a\u2029b",
    "aa",
    "aaa",
    "ab",
    "b",
    "[",
    "]",
    "a-z",
]
DATES = ["0001-01-01", "1500-02-28", "1582-10-10", "1969-12-31", "1970-01-01", "2020-02-29", "9999-12-31"]
MOMENTS = [
    f"{day}{time}" for day in DATES for time in ("T00:00:00Z", "T12:30:00.000001Z", "T23:59:59.999999Z")
]
PATTERNS = [
    "",
    "^[A-Z]{2}$",
    "^[A-Z]{2}\\z",
    "a",
    ".",
    "^.$",
    "^.{2}$",
    "^..?$",
    "a.b",
    "\\d",
    "^\\d+$",
    "\\w",
    "^\\w+$",
]
PATTERNS += [
    "\\W",
    "\\D",
    "[^a]",
    "^[^a]+$",
    "[\\d]",
    "^(DE|FR)$",
    "^DE|^a",
    "(a|b)+$",
    "a{2}",
    "a{1,2}?$",
    "^a*?$",
]
PATTERNS += [
    "^(?:a|b)$",
    "[a-c]",
    "[+-]",
    "\\.",
    "^[^\\n]*$",
    "^[\\t ]",
    "^$",
    "$",
    "^",
    "[\\]\\[]",
    "[^.]$",
    "\\-",
]
FOREIGN = [
    "(?i)de",
    "\\s",
    "[^\\s]",
    "\\S",
    "a++",
    "\\bDE\\b",
    "(a)\\1",
    "(?=a)a",
    "[a-z&&[^b]]",
    "\\p{L}",
    "ä",
    "(?s).",
]
FOREIGN += [
    "a*+",
    "[a[b]]",
    "(?<n>a)",
    "\\QDE\\E",
    "\\u0041",
    "\\x41",
    "\\Z",
    "\\A",
    "^a$|(?m)^b$",
    "\\R",
    "\\h",
    "\\v",
]
FORMATS = ["email", "uuid", "ipv4", "ipv6", "uri", "hostname"]
SURE = 0.45
"""Of rules and values that Spark calls good, Arrow must know so many, to be of use. Some bounds here no
value can reach."""


def rules_of(properties: list[dict[str, Any]], folder: Folder) -> tuple[RowRule, ...]:
    named = [{"name": f"c{index}", **each} for index, each in enumerate(properties)]
    document = {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": "sales",
        "version": "1.0.0",
        "status": "active",
        "schema": [{"name": "sales", "properties": named}],
    }
    folder.write(FILE, json.dumps(document, ensure_ascii=False))
    contract = read_contract(folder.path / FILE, FILE, "shop.sales")
    return tuple(rule for rule in contract.rules if isinstance(rule, RowRule))


def compared(kind: str, physical: str, bounds: list[Any]) -> Iterator[dict[str, Any]]:
    signs = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    for sign, bound in product(signs, bounds):
        yield {"logicalType": kind, "physicalType": physical, "logicalTypeOptions": {sign: bound}}


def said(kind: str, **options: Any) -> dict[str, Any]:
    return {"logicalType": kind, "logicalTypeOptions": options}


def metric(name: str, kind: str, **arguments: Any) -> dict[str, Any]:
    given = {"arguments": arguments} if arguments else {}
    return {"logicalType": kind, "quality": [{"metric": name, "mustBe": 0, **given}]}


def texts() -> list[dict[str, Any]]:
    lengths = [said("string", **{name: n}) for name in ("minLength", "maxLength") for n in (0, 1, 2, 3, 4, 8)]
    return [
        *lengths,
        *(said("string", pattern=pattern) for pattern in (*PATTERNS, *FOREIGN)),
        *(said("string", format=name) for name in FORMATS),
        {"logicalType": "time"},
        {
            "logicalType": "string",
            "enum": [{"value": value} for value in ("", "DE", "it's", "😀", "\\d", "a ")],
        },
        metric("missingValues", "string"),
        metric("missingValues", "string", missingValues=["n/a", "null", "ß"]),
        metric("nullValues", "string"),
    ]


KINDS: dict[str, tuple[pa.DataType, list[Any], Callable[[], list[dict[str, Any]]]]] = {
    "int": (
        pa.int32(),
        INTS,
        lambda: [
            *compared("integer", "int", BOUNDS),
            said("integer", format="u8") | {"physicalType": "int"},
            metric("invalidValues", "integer", validValues=[1, 5, -1]) | {"physicalType": "int"},
            metric("invalidValues", "integer", validValues=[1, 5.0]) | {"physicalType": "int"},
        ],
    ),
    "bigint": (
        pa.int64(),
        LONGS,
        lambda: [
            *compared("integer", "bigint", BOUNDS),
            *(said("integer", format=name) for name in ("i8", "u16", "u32", "u64", "u128")),
            metric("invalidValues", "integer", validValues=[2**31, 1]),
            metric("missingValues", "integer", missingValues=[0, -1]),
        ],
    ),
    "double": (pa.float64(), FLOATS, lambda: [*compared("number", "double", BOUNDS)]),
    "float": (pa.float32(), FLOATS, lambda: [*compared("number", "float", BOUNDS)]),
    "decimal": (
        pa.decimal128(12, 2),
        [Number(text) for text in ("0", "0.01", "-0.01", "1.50", "-1.50", "9999999999.99", "-9999999999.99")],
        lambda: [*compared("number", "decimal(12,2)", BOUNDS)],
    ),
    "wide decimal": (
        pa.decimal128(38, 10),
        [Number(text) for text in ("0", "1.5", "0.1", "-0.1", f"{10**28 - 1}", f"-{10**27}.0000000001")],
        lambda: [*compared("number", "decimal(38,10)", [0, 1.5, 0.1, 1e-5, 10**27])],
    ),
    "date": (
        pa.date32(),
        DATES,
        lambda: [*compared("date", "date", [*DATES, "2020-1-5"])],
    ),
    "timestamp": (
        pa.timestamp("us", tz="UTC"),
        MOMENTS,
        lambda: [
            *compared(
                "timestamp",
                "timestamp",
                ["1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "1500-03-01T00:00:00+02:00"],
            )
        ],
    ),
    "string": (pa.string(), TEXTS, texts),
}


@pytest.mark.spark
@pytest.mark.parametrize("name", KINDS)
def test_arrow_says_what_spark_says(folder: Folder, name: str) -> None:
    """No value that Spark rejects is good for Arrow, and Arrow knows most of those that Spark takes."""
    kind, values, properties = KINDS[name]
    rules = rules_of(properties(), folder)
    column = as_column([*values, None], kind)
    names = sorted({rule.column for rule in rules if rule.column is not None})
    rows = pa.table([column] * len(names), names=names)
    spark = folder.open().engine.spark
    conditions = [f"{broken_sql(rule.condition)} AS r{index}" for index, rule in enumerate(rules)]
    bad = to_arrow(from_arrow(spark, rows).coalesce(1).selectExpr(*conditions)).to_pydict()

    wrong, sure, possible = [], 0, 0
    for index, rule in enumerate(rules):
        for place, value in enumerate(column.to_pylist()):
            one = pa.table({rule.column: column.slice(place, 1)})
            is_sure, is_good = surely_keep(one, RowRules((rule,))), not bad[f"r{index}"][place]
            wrong += [(rule.name, rule.condition, value)] if is_sure and not is_good else []
            sure, possible = sure + is_sure, possible + is_good
    assert not wrong
    assert sure > SURE * possible, f"{sure} of {possible}"


@pytest.mark.spark
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 30))])
def test_patterns_of_all_kinds(folder: Folder, seed: int) -> None:
    """Patterns and texts by chance, of parts in which Java and RE2 differ: Arrow is never wrong."""
    chance = random.Random(seed)
    atoms = [
        "a",
        "b",
        ".",
        "[a-c]",
        "[^a]",
        "[^\\n]",
        "\\d",
        "\\w",
        "\\W",
        "\\.",
        "$",
        "^",
        "(a|b)",
        "(?:.a)",
        "-",
        " ",
    ]
    ends = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "+?"]
    patterns: list[str] = []
    while len(patterns) < 150:
        parts = (chance.choice(atoms) for _ in range(chance.randint(1, 5)))
        text = "".join(part + ("" if part in "$^" else chance.choice(ends)) for part in parts)
        patterns += [text] if as_re2(text) is not None else []
    letters = "ab-. \n\r\t\x0b\u0085\u2028äé1٣😀\x00"
    values = ["".join(chance.choices(letters, k=chance.randint(0, 5))) for _ in range(300)]
    rules = rules_of([said("string", pattern=pattern) for pattern in patterns], folder)
    rows = pa.table({"c": pa.array(values)})
    conditions = [
        f"{broken_sql(rule.condition).replace(f'`{rule.column}`', 'c')} AS r{index}"
        for index, rule in enumerate(rules)
    ]
    frame = from_arrow(folder.open().engine.spark, rows).coalesce(1)
    bad = to_arrow(frame.selectExpr(*conditions)).to_pydict()
    for index, rule in enumerate(rules):
        for place, value in enumerate(values):
            one = pa.table({rule.column: pa.array([value])})
            is_sure, is_good = surely_keep(one, RowRules((rule,))), not bad[f"r{index}"][place]
            assert is_good or not is_sure, (rule.condition, value, seed)
            if "." not in patterns[index] and "$" not in patterns[index]:
                assert is_sure == is_good, (rule.condition, value, seed)


def as_column(values: list[Any], kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_temporal(kind):
        return pa.chunked_array([pa.array(values, pa.string()).cast(kind)])
    return pa.chunked_array([pa.array(values, kind)])


def test_what_is_never_sure(tmp_path: Any) -> None:
    """A rule that only SQL can say, one on a part of a column, and texts that are none."""
    folder = Folder(tmp_path / "project")
    numbers = {"name": "one", "logicalType": "integer", "logicalTypeOptions": {"minimum": 0}}
    custom = {"type": "custom", "engine": "esker", "implementation": "c0 > 0"}
    rows = pa.table({"c0": pa.array([1])})
    for properties in (
        [{"logicalType": "integer", "quality": [custom]}],
        [{"logicalType": "array", "items": numbers}],
        [said("integer", multipleOf=1)],
        [{"logicalType": "string", "enum": [{"value": 1}, {"value": 1.5}]}],
    ):
        rules = rules_of(properties, folder)
        assert rules
        assert not surely_keep(rows, RowRules(rules))
    [rule] = rules_of([said("string", minLength=2)], folder)
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"]).buffers())
    assert not surely_keep(pa.table({"c0": broken}), RowRules((rule,)))
    assert surely_keep(pa.table({"c0": pa.array(["ab"])}), RowRules((rule,)))
    assert surely_keep(pa.table({"C0": pa.array(["ab", None])}), RowRules((rule,)))
    assert not surely_keep(pa.table({"other": pa.array(["ab"])}), RowRules((rule,)))


@pytest.mark.parametrize("pattern", FOREIGN)
def test_patterns_that_only_java_knows(pattern: str) -> None:
    assert as_re2(pattern) is None
