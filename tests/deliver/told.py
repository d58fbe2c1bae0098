"""A consumer for tests: a table loaded by key, and a shelf that is told of its changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from esker.deliver.targets.target import Target
from esker.events import Listener, silent
from esker.pipeline import deliver as delivering
from esker.pipeline import reindex as reindexing
from esker.pipeline import reindex_task as doing_tasks
from esker.pipeline.deliver import DeliveryResult
from esker.project import Project
from tests.deliver import meeting as meetings
from tests.deliver import shelf as shelves
from tests.deliver import thief as thieves
from tests.deliver.shelf import Shelf
from tests.load.works import Works

TRANSFORM = """
import esker

@esker.transform
def to_work(row):
    if row["title"] == "hidden":
        return None
    return {"id": row["id"], "title": row["title"].strip(), "tags": row.get("tags")}
"""


class Told:
    """Table `shop.works`, and consumer `search` with a shelf in the place of its target."""

    def __init__(
        self,
        path: Path,
        patch: pytest.MonkeyPatch,
        pipeline: dict[str, Any] | None = None,
        *,
        versions: bool = True,
        forgets: bool = False,
        more: dict[str, Any] | None = None,
        **keys: Any,
    ) -> None:
        consumer = {"from": "works", "to": {"type": "files", "path": "unused"}, **keys}
        project = {"consumers": {"search": consumer}, **(more or {})}
        self.works = Works(path, project=project, **(pipeline or {}))
        self.works.folder.write("transforms/works.py", TRANSFORM)
        self.shelf = Shelf(path / "shelf.db", keeps_versions=versions, forgets=forgets)
        use(patch, self.shelf)

    def change(self, **keys: Any) -> None:
        """Change keys of the consumer."""
        self.works.folder.document["consumers"]["search"].update(keys)
        self.works.folder.save()
        self.works.project = self.works.folder.open()

    def load(self, *rows: dict[str, Any]) -> None:
        self.works.load(rows)

    def deliver(self, listen: Listener = silent, **keys: Any) -> DeliveryResult:
        return self.works.project.deliver("search", listen, **keys)

    def reindex(self, **keys: Any) -> DeliveryResult:
        result = self.works.project.reindex("search", **keys)
        if result.error is not None:
            raise result.error
        return result

    def titles(self) -> dict[str, str]:
        """Return the titles of the documents that can be found."""
        return {id_: body["title"] for id_, body in self.shelf.documents().items()}

    def letters(self) -> list[dict[str, Any]]:
        """Return all events of dead letters, oldest first."""
        return self.works.read("lake.shop.search__dead ORDER BY event, id")


def use(patch: pytest.MonkeyPatch, target: Target) -> None:
    """Let consumers deliver to a shelf, whatever they declare."""

    def opened(project: Project, name: str) -> Target:
        return target

    for module in (delivering, reindexing, doing_tasks):
        patch.setattr(module, "opened", opened)
    # Spark's tasks may not find the tests.
    for module in (shelves, meetings, thieves):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


Tell = Callable[..., Told]
