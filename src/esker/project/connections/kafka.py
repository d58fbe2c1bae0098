"""Kafka, as users declare it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from esker.project.declaration import Declaration, Duration, MistakeAt, Texts
from esker.project.secrets import Secret

_OWN = {
    "bootstrap.servers": "servers",
    "sasl.username": "user",
    "sasl.password": "password",
    "sasl.mechanism": "mechanism",
    "sasl.mechanisms": "mechanism",
    "ssl.ca.location": "ca_file",
    "security.protocol": "tls",
    "message.timeout.ms": "timeout",
    "delivery.timeout.ms": "timeout",
}
_FIXED = (
    "acks",
    "request.required.acks",
    "enable.idempotence",
    "transactional.id",
    "enable.gapless.guarantee",
)
"""With other values of these, messages would be lost or change their order."""
_SECRET = ("password", "secret", "pem")
"""Parts of names of settings that are secrets."""


def _one_or_many(value: Any) -> Any:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


class KafkaConnection(Declaration):
    """A Kafka cluster, or a server that speaks its language."""

    type: Literal["kafka"]
    servers: Annotated[
        tuple[str, ...], BeforeValidator(_one_or_many, json_schema_input_type=tuple[str, ...] | str)
    ] = Field(min_length=1, description="Some of its brokers, `host:9092`.")
    user: str | None = Field(None, description="With `password`: SASL.")
    password: Secret | None = None
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "SCRAM-SHA-512", description="How user and password are told."
    )
    tls: bool = Field(False, description="Talk to brokers by TLS.")
    ca_file: str | None = Field(
        None, description="Certificates to trust, a PEM file, with `tls`. Default: those of the machine."
    )
    timeout: Duration = Field(
        timedelta(minutes=2), description="How long a message may take, with all that is tried again."
    )
    properties: Texts = Field(
        default_factory=dict, description="Further settings of librdkafka, passed on as they are."
    )
    secret_properties: dict[str, Secret] = Field(
        default_factory=dict,
        description="Settings of librdkafka that nobody may see, such as `ssl.key.password`.",
    )

    @field_validator("servers")
    @classmethod
    def _hosts_and_ports(cls, servers: tuple[str, ...]) -> tuple[str, ...]:
        for server in servers:
            host, _, port = server.rpartition(":")
            if not host or not port.isdigit() or "/" in host:
                raise ValueError(f'"{server}" is no broker; write host:9092')
        return servers

    @field_validator("properties")
    @classmethod
    def _not_secret(cls, properties: dict[str, str]) -> dict[str, str]:
        for name in properties:
            if name not in _OWN and any(word in name for word in _SECRET):
                raise MistakeAt((name,), f"{name} is a secret; write it below secret_properties:")
        return properties

    @field_validator("properties", "secret_properties")
    @classmethod
    def _not_twice(cls, properties: dict[str, Any]) -> dict[str, Any]:
        for name in properties:
            if (own := _OWN.get(name)) is not None:
                raise MistakeAt((name,), f"{name} is set by Esker; write {own}:")
            if name in _FIXED:
                raise MistakeAt((name,), f"{name} is set by Esker: no message is lost, or before its elders")
        return properties

    @model_validator(mode="after")
    def _whole(self) -> KafkaConnection:
        if (self.user is None) != (self.password is None):
            given, lacking = ("user", "password") if self.user is not None else ("password", "user")
            raise MistakeAt((given,), f"{given} is of no use without {lacking}")
        if self.ca_file is not None and not self.tls:
            raise MistakeAt(("ca_file",), "ca_file is of no use without tls: true")
        return self
