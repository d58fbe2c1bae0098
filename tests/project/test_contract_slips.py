"""Slips in a contract that would change what is loaded, and nobody would notice."""

from __future__ import annotations

from pathlib import Path

import pytest

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
