"""Where consumers deliver to. A new kind is one file here and one in `project/targets`.

One of another package is one file of its own, which imports from here. It is loaded while `esker.project` is:
nothing of that may be needed here by then.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from esker.deliver.targets.target import Index, Message, Op, Refused, Sender, Target
from esker.project.target_kinds import PluggedInTarget

if TYPE_CHECKING:
    from esker.project import Project
    from esker.project.targets import TargetDeclaration

_TARGETS = {
    "elasticsearch": "esker.deliver.targets.search:SearchIndex",
    "files": "esker.deliver.targets.files:FilesFolder",
    "kafka": "esker.deliver.targets.kafka:KafkaTopic",
    "opensearch": "esker.deliver.targets.search:SearchIndex",
    "python": "esker.deliver.targets.python:PythonFunction",
    "sns": "esker.deliver.targets.sns:SnsTopic",
    "sqs": "esker.deliver.targets.sqs:SqsQueue",
    "webhook": "esker.deliver.targets.webhook:Webhook",
}
"""What each kind is. Imported when it is used: what a kind needs need not be installed for others."""


def open_target(declared: TargetDeclaration, project: Project) -> Target:
    """Return the target that a declaration means, also one that another package offers.

    Nothing is connected yet. Raises MissingPackage.
    """
    if isinstance(declared, PluggedInTarget):
        plugged_in: Target = declared.open(project)
        return plugged_in
    module, _, name = _TARGETS[declared.type].partition(":")
    found: Target = getattr(import_module(module), name).of(declared, project)
    return found


__all__ = ["Index", "Message", "Op", "Refused", "Sender", "Target", "open_target"]
