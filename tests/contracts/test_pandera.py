"""A rule engine that somebody else wrote: pandera, found through its entry point."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from esker.contracts.plugged_in import installed
from esker.errors import EskerError, RuleEngineFailed
from tests.contracts import pandera_rules
from tests.contracts.folder import MakeFolder, change_contract, contract, contract_folder
from tests.folder import Folder

pytestmark = pytest.mark.spark
GOOD = [(1, 20, 1, "T0001")]
HEADER = ["id", "amount", "fee", "terminal"]
CONTRACT = contract(
    """
- {name: id, logicalType: integer}
- {name: amount, logicalType: integer}
- {name: fee, logicalType: integer}
- {name: terminal, logicalType: string}
""",
    f"""
- type: custom
  engine: pandera
  name: payments
  implementation: {{schema: "{pandera_rules.__name__}:PAYMENTS"}}
""",
)


@pytest.fixture
def pandera_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package that registers the engine, as pip leaves it."""
    package = tmp_path / "site/pandera_rules-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: pandera-rules\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[esker.rules]\npandera = {pandera_rules.__name__}:check\n")
    monkeypatch.syspath_prepend(str(package.parent))
    installed.cache_clear()
    yield
    installed.cache_clear()


@pytest.fixture
def folder(make_folder: MakeFolder, pandera_installed: None) -> Folder:
    """A project whose contract leaves a rule to pandera."""
    return contract_folder(make_folder, CONTRACT)


def test_rows_that_pandera_refuses(folder: Folder) -> None:
    """They wait in quarantine, with all that pandera says of them; the others are loaded."""
    rows = [
        (1, 20, 1, "T0001"),
        (2, 900, 1, "T0001"),
        (3, 20, 30, "T0001"),
        (4, 0, 0, "till 4"),
        (5, "", 1, ""),
        (6, "twenty", 1, "T0001"),
    ]
    folder.write_csv("landing/a.csv", HEADER, rows)
    result = folder.run()
    assert (result.rows.read, result.rows.inserted, result.rows.quarantined) == (6, 2, 4)
    assert not result.notes
    assert folder.rows("shop.sales", "id") == [(1,), (5,)]
    assert folder.rows("shop.sales__quarantine", "rules", "reason") == [
        (["payments"], "amount: in_range(1, 500); terminal: str_matches('^T[0-9]{4}$')"),
        (["payments"], "amount: in_range(1, 500)"),
        (["payments"], "fee_within_amount"),
        (["type"], 'column "amount": "twenty" is no bigint'),
    ]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("PAIMENTS", "AttributeError: module .* has no attribute 'PAIMENTS'"),
        ("NO_SCHEMA", "TypeError: .*:NO_SCHEMA is no schema of pandera"),
        ("OF_ANOTHER_TABLE", "column 'merchant' not in dataframe"),
    ],
)
def test_schemas_that_are_not_there_or_broken(folder: Folder, schema: str, told: str) -> None:
    """The run says what is wrong with the schema, and loads nothing."""
    change_contract(folder, "PAYMENTS", schema)
    folder.write_csv("landing/a.csv", HEADER, GOOD)
    with pytest.raises(RuleEngineFailed) as caught:
        folder.run()
    assert caught.value.message == 'rule "payments": the engine "pandera" failed'
    assert re.search(told, caught.value.reason)
    assert folder.rows() == []


def test_a_check_that_stumbles_over_rows(folder: Folder) -> None:
    """It fails on an executor, when rows are written: nothing is loaded, and the next run begins anew."""
    change_contract(folder, "PAYMENTS", "STUMBLING")
    folder.write_csv("landing/a.csv", HEADER, GOOD)
    with pytest.raises(EskerError):
        folder.run()
    assert folder.rows() == []
    change_contract(folder, "STUMBLING", "PAYMENTS")
    assert folder.run().rows.inserted == 1
