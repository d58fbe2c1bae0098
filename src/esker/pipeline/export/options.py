"""How a state machine of AWS Step Functions runs things."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Runner = Literal["glue", "emr", "lambda", "ecs"]
TaskRunner = Literal["lambda", "ecs"]


@dataclass(frozen=True)
class Options:
    """How a state machine runs things."""

    runner: Runner = "glue"
    """Who runs pipelines, and begins and ends a reindex."""
    application: str | None = None
    """The application of EMR Serverless."""
    tasks: TaskRunner = "lambda"
    """Who delivers, and does the tasks of a reindex, unless the runner does so itself."""
    subnets: tuple[str, ...] = ()
    cluster: str = "default"
    schedule: str | None = None
    """When it starts: `rate(…)` or `cron(…)` of EventBridge. Default: the shortest `every` of pipelines."""
