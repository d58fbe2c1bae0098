"""Values of partitions, which are equal when Iceberg takes their partitions for one."""

from __future__ import annotations

import math
import struct
from typing import Any


class PartitionNumber(float):
    """A float of a partition: NaN equals NaN, and −0.0 is not 0.0.

    Python has both the other way round. Deletes of a partition would not be found, or be written for the
    files of another one.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and _bits(self) == _bits(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(_bits(self))


def exact(value: Any) -> Any:
    """Return the value of a partition such that it equals what Iceberg takes for the same."""
    return PartitionNumber(value) if isinstance(value, float) else value


def _bits(number: float) -> bytes:
    return b"nan" if math.isnan(number) else struct.pack("<d", number)
