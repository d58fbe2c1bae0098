"""A comparison in several queries, each over what the ones before it found."""

from __future__ import annotations

Steps = tuple[tuple[str, str], ...]
"""Names and SQL of queries. `{name}` in a query stands for what an earlier one found."""
