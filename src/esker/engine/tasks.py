"""How many tasks read a frame."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame


def tasks_of(frame: DataFrame) -> int | None:
    """Return how many tasks read a frame; None where Spark decides that only while it runs."""
    java: Any = frame._jdf
    plan = java.queryExecution().executedPlan()
    # Rows that go from task to task: to ask for their number would send them.
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        return None
    return int(plan.execute().getNumPartitions())
