"""All kinds of target, told apart by `type`. Other packages offer theirs by an entry point."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import Field

from esker.project.plugged_in import plugged_in
from esker.project.targets import AnyTarget, TargetDeclaration

GROUP = "esker.targets"


class PluggedInTarget(TargetDeclaration):
    """A kind of target that another package offers, by an entry point of the group `esker.targets`."""

    def open(self, project: Any) -> Any:
        """Return the target (`esker.deliver.targets.target.Target`). What it needs is imported here."""
        raise NotImplementedError


def _built_in() -> tuple[type[TargetDeclaration], ...]:
    union, *_ = get_args(AnyTarget)
    return get_args(union)


if TYPE_CHECKING:
    Target = TargetDeclaration
else:
    _BUILT_IN = _built_in()
    _OFFERED = plugged_in(GROUP, "target", TargetDeclaration, PluggedInTarget, _BUILT_IN)
    _KINDS = (*_BUILT_IN, *_OFFERED)
    Target = Annotated[reduce(or_, _KINDS), Field(discriminator="type")]
