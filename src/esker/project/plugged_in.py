"""Kinds of declarations that other packages offer, by an entry point."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeVar

from pydantic import create_model, model_validator

from esker.project.declaration import Declaration

_Kind = TypeVar("_Kind", bound=Declaration)


def plugged_in(
    group: str, thing: str, base: type[_Kind], offered: type[_Kind], built_in: Iterable[type[_Kind]]
) -> tuple[type[_Kind], ...]:
    """Return the kinds of a thing (`source`, `target`) that packages offer in a group of entry points.

    Each is an `offered`. One that has the name of a built-in kind is left out, one that cannot be imported
    is a `base` that is refused where it is used.
    """
    taken = {kind.model_fields["type"].default for kind in built_in}
    points = {point.name: point for point in entry_points(group=group)}
    return tuple(
        _loaded(point, thing, base, offered) for name, point in sorted(points.items()) if name not in taken
    )


def _loaded(point: EntryPoint, thing: str, base: type[_Kind], offered: type[_Kind]) -> type[_Kind]:
    try:
        kind = point.load()
    except Exception as error:
        return _refused(point, thing, base, f"{type(error).__name__}: {error}")
    if not (isinstance(kind, type) and issubclass(kind, offered)):
        return _refused(point, thing, base, f"it is no {offered.__name__}")
    return kind


def _refused(point: EntryPoint, thing: str, base: type[_Kind], why: str) -> type[_Kind]:
    package = point.dist.name if point.dist is not None else point.value

    def refuse(_: Any) -> Any:
        raise ValueError(f'package "{package}" offers this kind of {thing}, and it cannot be used: {why}')

    validators: dict[str, Any] = {"refuse": model_validator(mode="before")(refuse)}
    named: Any = (Literal[point.name], ...)
    return create_model(f"Unusable{point.name.title()}", __base__=base, __validators__=validators, type=named)
