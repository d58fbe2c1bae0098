"""Run ids: unique, and sorted by time."""

from __future__ import annotations

import time
from uuid import RFC_4122, UUID

from esker.ledger.run_id import new_run_id


def test_a_run_id_is_a_version_7_uuid_of_now() -> None:
    """Any tool reads it as a UUID, and its first 48 bits as milliseconds."""
    before = time.time_ns() // 1_000_000
    found = UUID(new_run_id())
    after = time.time_ns() // 1_000_000
    assert (found.version, found.variant) == (7, RFC_4122)
    assert before <= found.int >> 80 <= after


def test_run_ids_are_unique_and_sort_by_time() -> None:
    """Ids of later milliseconds are greater; within one they still differ."""
    found = []
    for _ in range(5):
        found += [new_run_id() for _ in range(200)]
        time.sleep(0.002)
    assert len(set(found)) == len(found)
    assert [run_id[:13] for run_id in found] == sorted(run_id[:13] for run_id in found)
