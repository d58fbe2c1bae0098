"""All kinds of source, told apart by `type`. Other packages offer theirs by an entry point."""

from __future__ import annotations

from functools import reduce
from importlib.metadata import EntryPoint, entry_points
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model, model_validator

from esker.project.sources import (
    DltSource,
    FilesSource,
    HttpSource,
    JdbcSource,
    OaiPmhSource,
    PluggedInSource,
    PythonSource,
    QuerySource,
    SourceDeclaration,
    TableSource,
)

GROUP = "esker.sources"
BUILT_IN: tuple[type[SourceDeclaration], ...] = (
    DltSource,
    FilesSource,
    HttpSource,
    JdbcSource,
    OaiPmhSource,
    PythonSource,
    QuerySource,
    TableSource,
)


def _plugged_in() -> tuple[type[SourceDeclaration], ...]:
    taken = {kind.model_fields["type"].default for kind in BUILT_IN}
    points = {point.name: point for point in entry_points(group=GROUP)}
    return tuple(_loaded(point) for name, point in sorted(points.items()) if name not in taken)


def _loaded(point: EntryPoint) -> type[SourceDeclaration]:
    """Return a kind that a package offers; one that cannot be imported is refused where it is used."""
    try:
        kind = point.load()
    except Exception as error:
        return _refused(point, f"{type(error).__name__}: {error}")
    if not (isinstance(kind, type) and issubclass(kind, PluggedInSource)):
        return _refused(point, "it is no PluggedInSource")
    return kind


def _refused(point: EntryPoint, why: str) -> type[SourceDeclaration]:
    package = point.dist.name if point.dist is not None else point.value

    def refuse(_: Any) -> Any:
        raise ValueError(f'package "{package}" offers this kind of source, and it cannot be used: {why}')

    validators: dict[str, Any] = {"refuse": model_validator(mode="before")(refuse)}
    named: Any = (Literal[point.name], ...)
    return create_model(
        f"Unusable{point.name.title()}", __base__=SourceDeclaration, __validators__=validators, type=named
    )


if TYPE_CHECKING:
    Source = SourceDeclaration
else:
    Source = Annotated[reduce(or_, (*BUILT_IN, *_plugged_in())), Field(discriminator="type")]
