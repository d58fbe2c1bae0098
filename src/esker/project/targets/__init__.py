"""What users declare of targets, told apart by `type`."""

from typing import Annotated

from pydantic import Field

from esker.project.targets.files import FilesTarget
from esker.project.targets.kafka import KafkaTarget
from esker.project.targets.python import PythonTarget
from esker.project.targets.search import ElasticsearchTarget, OpensearchTarget, SearchTarget
from esker.project.targets.sns import SnsTarget
from esker.project.targets.sqs import SqsTarget
from esker.project.targets.target import TargetDeclaration
from esker.project.targets.webhook import WebhookTarget

AnyTarget = Annotated[
    ElasticsearchTarget
    | OpensearchTarget
    | KafkaTarget
    | WebhookTarget
    | SnsTarget
    | SqsTarget
    | FilesTarget
    | PythonTarget,
    Field(discriminator="type"),
]
"""All kinds, told apart by `type`."""

__all__ = [
    "AnyTarget",
    "ElasticsearchTarget",
    "FilesTarget",
    "KafkaTarget",
    "OpensearchTarget",
    "PythonTarget",
    "SearchTarget",
    "SnsTarget",
    "SqsTarget",
    "TargetDeclaration",
    "WebhookTarget",
]
