"""Slips in a contract that would change what is loaded, and nobody would notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.project import load_project
from esker.project.contract.read import UnreadableContract, read_contract
from tests.contracts.folder import contract


def write(folder: Path, status: str = "active", kind: str = "decimal(12,2)") -> Path:
    target = folder / "sales.odcs.yaml"
    amount = f'- {{name: amount, logicalType: number, physicalType: "{kind}"}}'
    target.write_text(contract(amount, status=status))
    return target


def test_a_status_that_nobody_knows(tmp_path: Path) -> None:
    """It might have been draft, which holds all rows back."""
    with pytest.raises(UnreadableContract, match='did you mean "draft"') as caught:
        read_contract(write(tmp_path, status="drfat"), "sales.odcs.yaml", "shop.sales")
    assert caught.value.problems[0].line == 5


def test_a_physical_type_that_nobody_knows(tmp_path: Path) -> None:
    """The logical type is taken, and that is said: a sum of doubles is no sum of money."""
    assert read_contract(write(tmp_path), "sales.odcs.yaml", "shop.sales").notes == ()
    [note] = read_contract(write(tmp_path, kind="decimel(12,2)"), "sales.odcs.yaml", "shop.sales").notes
    assert note == 'amount: physicalType "decimel(12,2)" is not known here, and double is taken'


def test_more_digits_than_there_are(tmp_path: Path) -> None:
    """The logical type would be taken otherwise, and digits be lost."""
    with pytest.raises(UnreadableContract, match="at most 38 digits") as caught:
        read_contract(write(tmp_path, kind="decimal(99,2)"), "sales.odcs.yaml", "shop.sales")
    assert caught.value.problems[0].line == 9


def test_a_custom_property_that_looks_like_one_of_ours(tmp_path: Path) -> None:
    """The standard leaves these names to everybody: what may be a slip is said, by `esker check` too."""
    path = write(tmp_path)
    names = ["partitionTransfrom", "partition_hint", "sortPosition"]
    custom = ", ".join(f"{{property: {name}, value: 1}}" for name in names)
    path.write_text(path.read_text().replace("}\n", f", customProperties: [{custom}]}}\n"))
    source = '{type: files, path: "*.csv", format: csv}'
    pipeline = f"{{source: {source}, table: shop.sales, contract: sales.odcs.yaml}}"
    (tmp_path / "esker.yml").write_text(f"project: shop\npipelines:\n  sales: {pipeline}\n")
    [note] = load_project(tmp_path).warnings()
    said = 'custom property "partitionTransfrom" is not known here; did you mean "partitionTransform"?'
    assert note == f"sales.odcs.yaml: line 9: {said}"
