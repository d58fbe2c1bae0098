"""Further properties of Iceberg's clients, passed on as they are."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from pydantic import BeforeValidator, Field

from esker.project.declaration import MistakeAt, Texts
from esker.project.settings import secrets_from_environment

ClientProperties = Annotated[
    Texts,
    BeforeValidator(secrets_from_environment),
    Field(description="Further properties of Iceberg's client, as they are."),
]


def not_twice(properties: dict[str, str], own: Collection[str]) -> dict[str, str]:
    """Return properties; raise MistakeAt for one that the declaration has a key for."""
    for key in properties:
        if key.lower() in own:
            raise MistakeAt(
                (key,), f'"{key}" has a key of its own: {key.rpartition(".")[2].replace("-", "_")}'
            )
    return properties
