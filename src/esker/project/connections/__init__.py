"""The kinds of server that a project may name, beside catalogs and stores: targets deliver to them."""

from esker.project.connections.aws import AwsConnection
from esker.project.connections.kafka import KafkaConnection
from esker.project.connections.search import ElasticsearchConnection, OpensearchConnection, SearchConnection
from esker.project.connections.webhook import Signature, WebhookConnection

AnyServer = (
    ElasticsearchConnection | OpensearchConnection | KafkaConnection | WebhookConnection | AwsConnection
)
"""All kinds."""

__all__ = [
    "AnyServer",
    "AwsConnection",
    "ElasticsearchConnection",
    "KafkaConnection",
    "OpensearchConnection",
    "SearchConnection",
    "Signature",
    "WebhookConnection",
]
