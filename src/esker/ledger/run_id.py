"""Identifiers that sort by time."""

from __future__ import annotations

import secrets
import time
from uuid import UUID


def new_run_id() -> str:
    """Return a new UUIDv7: 48 bits of milliseconds, then 74 random bits (RFC 9562)."""
    milliseconds = time.time_ns() // 1_000_000
    value = milliseconds << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(UUID(int=value))
