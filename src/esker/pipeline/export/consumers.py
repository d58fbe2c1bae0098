"""What deliveries need on a platform: packages of their targets, rights to send, tables to join."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from esker.engine.iceberg.table_id import TableId, named_table
from esker.project import Project
from esker.project.targets import SnsTarget, SqsTarget

_OF_TARGETS = {
    "elasticsearch": "search",
    "kafka": "kafka",
    "opensearch": "search",
    "sns": "aws",
    "sqs": "aws",
    "webhook": "http",
}
_QUEUE = re.compile(
    r"https://sqs\.(?P<region>[a-z0-9-]+)\.[a-z.]+/(?P<account>\d{12})/(?P<name>[A-Za-z0-9_.-]+)"
)


def consumers_of(project: Project, pipelines: Sequence[str]) -> tuple[str, ...]:
    """Return the consumers that are told of what these pipelines load."""
    return tuple(name for name, each in project.consumers.items() if each.source in pipelines)


def extras_for(project: Project, consumers: Sequence[str]) -> set[str]:
    """Return the extras of Esker that deliveries to these consumers need."""
    kinds = (project.consumer(name).to.type for name in consumers)
    return {_OF_TARGETS[kind] for kind in kinds if kind in _OF_TARGETS}


def tables_joined(project: Project, consumers: Sequence[str]) -> list[TableId]:
    """Return the tables whose rows are joined to messages. Deliveries set tags on them."""
    found: dict[TableId, None] = {}
    for name in consumers:
        for wanted in project.consumer(name).enrich.values():
            found[named_table(project, wanted.table)] = None
    return list(found)


def rights_to_send(project: Project, consumers: Sequence[str], partition: str) -> list[dict[str, Any]]:
    """Return the IAM statements that allow sending to the topics and queues of these consumers."""
    targets = [project.consumer(name).to for name in consumers]
    topics = [target.topic for target in targets if isinstance(target, SnsTarget)]
    found = [_QUEUE.fullmatch(target.queue) for target in targets if isinstance(target, SqsTarget)]
    queues = [f"arn:{partition}:sqs:{m['region']}:{m['account']}:{m['name']}" for m in found if m]
    rights = (("Topics", "sns:Publish", topics), ("Queues", "sqs:SendMessage", queues))
    return [
        {"Sid": sid, "Effect": "Allow", "Action": [action], "Resource": resources}
        for sid, action, resources in rights
        if resources
    ]
