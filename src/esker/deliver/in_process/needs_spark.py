"""What sends a delivery to Spark."""

from __future__ import annotations


class NeedsSpark(Exception):
    """This process cannot do it alone, and why. Nothing was sent of what needs Spark."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
