"""The order of pipelines that feed each other."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from esker.project import Project


def in_order(project: Project, names: Sequence[str]) -> list[str]:
    """Return pipelines such that each stands behind those whose tables it reads, else as they were.

    Those that feed each other in a circle stay as they were: each run takes what the last one left.
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
    while True:
        sorter = TopologicalSorter(feeds)
        try:
            sorter.prepare()
            break
        except CycleError as error:
            circle = set(error.args[1])
            feeds |= {name: feeds[name] - circle for name in circle}
    found: list[str] = []
    ready: list[str] = []
    places = {name: place for place, name in enumerate(names)}
    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()], key=places.__getitem__)
        found.append(ready.pop(0))
        sorter.done(found[-1])
    return found
