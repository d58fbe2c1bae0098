"""Whether a platform has started this program."""

from __future__ import annotations

import os


def is_submitted() -> bool:
    """Tell whether a platform has started Java already, and this program from it: spark-submit, Glue, EMR."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
