"""Whether a rule can look into the table that it refers to."""

from __future__ import annotations

from esker.contracts.evolution import find
from esker.engine.iceberg.table_metadata import Table
from esker.errors import UnknownReference
from esker.project.contract import Contract
from esker.project.contract.model import Reference


def check_reference(contract: Contract, rule: Reference, present: Table | None) -> Table:
    """Return the table that a rule refers to, or raise UnknownReference."""
    place = f"{contract.file}:{rule.line}" if rule.line else contract.file
    if present is None:
        raise UnknownReference(place, rule.name, f'there is no table "{rule.table}"')
    for name in rule.to:
        if find(present.columns, name) is None:
            raise UnknownReference(place, rule.name, f'table "{rule.table}" has no column "{name}"')
    return present
