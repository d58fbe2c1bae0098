"""Indices of Elasticsearch and OpenSearch as targets, as users declare them."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from esker.project.declaration import Name
from esker.project.targets.target import TargetDeclaration

_FORBIDDEN = set('\\/*?"<>| ,#:')
_LONGEST = 240
"""Indices behind an alias have a number behind its name, and 255 bytes at most."""


class SearchTarget(TargetDeclaration):
    """What all search indices share."""

    connection: Name = Field(description="The cluster, named below `connections:`.")
    index: str = Field(
        description="An alias. The first delivery makes an index behind it, `works-000001` for `works`; a "
        "full reindex fills another one, and the alias leads there afterwards. An index of that very name is "
        "written to as well, but cannot be replaced by a reindex."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Of indices that are made, such as `number_of_shards`."
    )
    mappings: dict[str, Any] = Field(
        default_factory=dict,
        description="Of indices that are made: `properties`, `dynamic`… By default the server guesses, and "
        "a reindex takes those of the present index.",
    )

    @field_validator("index")
    @classmethod
    def _a_name(cls, index: str) -> str:
        if not index or index != index.lower() or _FORBIDDEN & set(index) or index[0] in "-_+.":
            raise ValueError(
                f'"{index}" is no name of an index: lower-case letters, digits, - and _, beginning with a '
                "letter or digit"
            )
        if len(index.encode()) > _LONGEST:
            raise ValueError(f"a name of more than {_LONGEST} bytes is too long")
        return index


class ElasticsearchTarget(SearchTarget):
    """An index of Elasticsearch. Each row is a document; an older version never replaces a newer one."""

    type: Literal["elasticsearch"] = "elasticsearch"
    reaches: ClassVar[tuple[str, ...]] = ("elasticsearch",)


class OpensearchTarget(SearchTarget):
    """An index of OpenSearch. Each row is a document; an older version never replaces a newer one."""

    type: Literal["opensearch"] = "opensearch"
    reaches: ClassVar[tuple[str, ...]] = ("opensearch",)
