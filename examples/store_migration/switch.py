"""Where readers read: from the old store, until it is switched, then from the table."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE / "sources")]

from pyspark.sql import functions as F
from versioned_store import Mark, VersionedStore

from esker.pipeline.api import OpenProject
from examples.store_migration.compare import TABLE, compare

_SWITCH = "readers.json"


class NotSwitched(Exception):
    """The old store is not what it must be for the switch to count."""


@dataclass(frozen=True)
class Readers:
    """Reads records, wherever they are read now."""

    project: OpenProject
    store: VersionedStore

    def reads_table(self) -> bool:
        """Tell whether it was switched."""
        return self._file.exists()

    def read(self, id: str) -> dict[str, Any] | None:
        """Return a record; None for one that is deleted or never was there."""
        return self._from_table(id) if self.reads_table() else self._from_store(id)

    def switch(self) -> None:
        """Load the last changes, compare, and let readers go to the table; or raise NotSwitched."""
        before = self.store.mark()
        self.project.run("records")
        comparison = compare(self.project, self.store)
        if not comparison.is_equal:
            raise NotSwitched(str(comparison))
        if self.store.mark() != before:
            raise NotSwitched("the old store was written to meanwhile; stop its writers, and switch again")
        self._file.write_text(json.dumps(asdict(before)), encoding="utf-8")

    def check_store(self) -> None:
        """Raise NotSwitched if anything was written to the old store after the switch: nobody reads it."""
        then = Mark(**json.loads(self._file.read_text(encoding="utf-8")))
        now = self.store.mark()
        if now == then:
            return
        late = [entry.id for page in self.store.changed(then.newest + 1) for entry in page]
        raise NotSwitched(
            f"the old store was written to after the switch: {now.versions - then.versions} versions more, "
            f"{now.records - then.records} records more; changed since: {', '.join(late) or 'cannot be told'}"
        )

    @property
    def _file(self) -> Path:
        return self.project.project.folder / _SWITCH

    def _from_table(self, id: str) -> dict[str, Any] | None:
        found = self.project.table(TABLE).where((F.col("id") == id) & ~F.col("deleted"))
        row = found.select("title", "creators", "note").first()
        return None if row is None else _without_nulls(row.asDict())

    def _from_store(self, id: str) -> dict[str, Any] | None:
        entry = self.store.entry(id)
        if entry is None or entry.key is None:
            return None
        row = self.store.read(entry)
        return _without_nulls({name: row.get(name) for name in ("title", "creators", "note")})


def _without_nulls(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value is not None}
