"""The order of pipelines that feed each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from esker.project import Pipeline, Project
from esker.project.contract.model import Reference


def in_order(project: Project, names: Sequence[str]) -> list[str]:
    """Return pipelines such that each stands behind those whose tables it reads, or its contract refers to.

    Else they stay as they were, also those that feed each other in a circle: each run takes what the last one
    left. Where only references close a circle, what is read decides.
    """
    chosen = {name: project.pipeline(name) for name in names}
    feeds = {
        name: {
            other
            for other, writer in chosen.items()
            if other != name and pipeline.source.reads_table(writer.table)
        }
        for name, pipeline in chosen.items()
    }
    known = {name: _referred_to(project, name, chosen) for name in chosen}
    while True:
        sorter = TopologicalSorter({name: feeds[name] | known[name] for name in chosen})
        try:
            sorter.prepare()
            break
        except CycleError as error:
            circle = set(error.args[1])
            softest = known if any(known[name] & circle for name in circle) else feeds
            softest |= {name: softest[name] - circle for name in circle}
    found: list[str] = []
    ready: list[str] = []
    places = {name: place for place, name in enumerate(names)}
    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()], key=places.__getitem__)
        found.append(ready.pop(0))
        sorter.done(found[-1])
    return found


def _referred_to(project: Project, name: str, chosen: Mapping[str, Pipeline]) -> set[str]:
    """Return the pipelines in whose tables the values of a pipeline must stand."""
    contract = project.contract(name)
    rules = contract.rules if contract is not None else ()
    tables = {rule.table for rule in rules if isinstance(rule, Reference)}
    return {other for other, writer in chosen.items() if other != name and writer.table in tables}
