"""Every version of the standard that is read, in its own words.

The rules are those of the standard's text and examples, of v3.0 and of v3.1.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from esker.project.contract import Contract, UnreadableContract, read_contract
from esker.project.contract.model import Audit, Bound, PluggedIn, RowRule, Unique
from esker.project.contract.standard import VERSIONS

HEAD = """\
    kind: DataContract
    id: 53581432-6c55-4ba2-a65f-72344a91553a
    version: 1.0.0
    status: active
    team:
      - {{username: ceastwood, role: Data Scientist, dateIn: 2022-08-02, dateOut: 2022-10-01}}
    apiVersion: {version}
    schema:
      - name: Air_Quality
        properties:
        - name: UniqueID
          logicalType: number
          physicalType: int
          examples: [100001, 100002]
          logicalTypeOptions: {options}
          quality:
          - {nulls}
          - {duplicates}
          - type: custom
            engine: soda
            implementation: |
              type: duplicate_percent
              must_be_less_than: 1.0
          - type: custom
            engine: soda
            implementation: {{type: duplicate_percent, must_be_less_than: 1.0}}
        - name: unit
          logicalType: string
          quality:
          - {values}
        - name: txn_ref_dt
          logicalType: date
          examples: [2022-10-03, 2025-01-28]
        quality:
        - {rows}
    """
OLD = {
    "options": "{minimum: 100000, maximum: 500000, exclusiveMaximum: true, exclusiveMinimum: false}",
    "nulls": "{rule: nullCheck, description: should not contain null values, dimension: completeness}",
    "duplicates": "{type: library, rule: duplicateCount, mustBeLessThan: 1, unit: percent}",
    "values": "{rule: validValues, validValues: ['pounds']}",
    "rows": "{rule: rowCount, mustBeBetween: [100, 120], name: Verify row count range}",
}
NEW = {
    "options": "{minimum: 100000, exclusiveMaximum: 500000}",
    "nulls": "{metric: nullValues, mustBe: 0, description: should not contain null values}",
    "duplicates": "{type: library, metric: duplicateValues, mustBeLessThan: 1, unit: percent}",
    "values": "{metric: invalidValues, mustBe: 0, arguments: {validValues: ['pounds']}}",
    "rows": "{metric: rowCount, mustBeBetween: [100, 120], name: Verify row count range}",
}


def read(folder: Path, version: str, **words: str) -> Contract:
    path = folder / "air.odcs.yaml"
    own = OLD if version.startswith("v3.0.") else NEW
    path.write_text(dedent(HEAD).format(version=version, **(own | words)))
    return read_contract(path, "air.odcs.yaml", "city.air")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_contract_of_each_version(tmp_path: Path, version: str) -> None:
    """It means the same in all of them, whatever its words are."""
    contract = read(tmp_path, version)
    rules = {each.name: each for each in contract.rules}
    conditions = {name: rule.condition for name, rule in rules.items() if isinstance(rule, RowRule)}
    assert conditions == {
        "UniqueID.minimum": "`UniqueID` >= 100000",
        "UniqueID.exclusiveMaximum": "`UniqueID` < 500000",
        "UniqueID.nullValues": "`UniqueID` IS NOT NULL",
        "unit.invalidValues": "`unit` IN ('pounds')",
    }
    duplicates = rules["UniqueID.duplicateValues"]
    assert isinstance(duplicates, Unique)
    assert (duplicates.columns, duplicates.bound) == (("UniqueID",), Bound("mustBeLessThan", 1, True))
    assert [each.name for each in contract.rules if isinstance(each, PluggedIn)] == [
        "UniqueID.soda",
        "UniqueID.soda.2",
    ]
    [rows] = contract.audits
    assert isinstance(rows, Audit)
    assert (rows.name, rows.bound) == ("Verify row count range", Bound("mustBeBetween", [100, 120]))
    assert contract.notes == ()


@pytest.mark.parametrize(
    ("word", "rule", "told"),
    [
        (
            "values",
            "{rule: minCheck, customProperties: [{property: min, value: 100000}]}",
            'line 30: rule "minCheck", which is not known here, is text: nobody checks it',
        ),
        (
            "rows",
            "{rule: countCheck, type: library, dimension: completeness}",
            'line 35: rule "countCheck", which says no number, is text: nobody checks it',
        ),
    ],
)
def test_rules_of_the_old_standard_that_say_too_little(
    tmp_path: Path, word: str, rule: str, told: str
) -> None:
    """The standard's own examples have such rules: they are told, and the contract is read."""
    assert read(tmp_path, "v3.0.2", **{word: rule}).notes == (told,)


def test_the_old_words_in_a_newer_version(tmp_path: Path) -> None:
    with pytest.raises(UnreadableContract, match='key "metric" is missing'):
        read(tmp_path, "v3.1.0", values=OLD["values"].replace("{", "{type: library, "))


def test_a_status_of_the_old_standard(tmp_path: Path) -> None:
    """The examples of v3.0.0 are all `current`."""
    path = tmp_path / "air.odcs.yaml"
    text = dedent(HEAD).format(version="v3.0.0", **OLD).replace("status: active", "status: current")
    path.write_text(text)
    assert read_contract(path, "air.odcs.yaml", "city.air").status == "active"


def test_two_rules_of_one_name(tmp_path: Path) -> None:
    """Numbers are for those that nobody named."""
    named = "{metric: nullValues, mustBe: 0, name: filled}"
    with pytest.raises(UnreadableContract, match='two rules are called "filled"'):
        read(tmp_path, "v3.1.0", nulls=named, values=named)


def test_a_rule_that_names_no_column_of_the_table(tmp_path: Path) -> None:
    """What is told points at the rule, not at the table."""
    rule = "{metric: duplicateValues, mustBe: 0, arguments: {properties: [unti]}, name: pairs}"
    with pytest.raises(UnreadableContract) as caught:
        read(tmp_path, "v3.1.0", rows=rule)
    [problem] = caught.value.problems
    assert (problem.line, problem.column) == (35, 7)
    assert problem.message == 'rule "pairs" names a column "unti" that is not there; did you mean "unit"?'


def test_arguments_of_the_old_standard_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UnreadableContract, match=r"air\.odcs\.yaml:\d+:\d+: .*arguments"):
        read(tmp_path, "v3.0.2", values="{rule: validValues, validValues: [a], arguments: x}")
