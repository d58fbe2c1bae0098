"""A contract for narrow rows with simple rules, for the tests and the benchmark of the smallest batch."""

from __future__ import annotations

from tests.contracts.folder import contract

NARROW = contract(
    """
    - {name: id, logicalType: integer, required: true, primaryKey: true}
    - name: name
      logicalType: string
      required: true
      logicalTypeOptions: {minLength: 1, maxLength: 100, pattern: "^[a-z]+ [0-9]+$"}
    - {name: version, logicalType: integer, required: true, logicalTypeOptions: {minimum: 0}}
    """
)
