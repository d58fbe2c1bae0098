"""The project and the contract that the page on contracts shows are valid, and mean what it says."""

from __future__ import annotations

import re
from pathlib import Path

from esker.project import load_project

PAGE = Path(__file__).parents[2] / "docs/how-to/contracts.md"


def test_the_page(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n# (\S+)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert [name for name, _ in blocks] == ["esker.yml", "contracts/sales.odcs.yaml"]
    for name, text in blocks:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"project: shop\n{text}" if name == "esker.yml" else text)
    project = load_project(tmp_path)
    contract = project.contract("sales")
    assert contract is not None
    assert project.pipeline("sales").partition_by == ["day"]
    names = {rule.name for rule in contract.rules}
    assert names == {"amount.minimum", "country.invalidValues", "customer.reference", "primary_key"}
    for name in ("amount.minimum", "country.invalidValues", "customer.reference", "primary_key"):
        assert f"`{name}`" in PAGE.read_text()
