"""A dlt pipeline that is killed while it loads: started by tests as a process of its own.

    python -m tests.dlt.killed_load FOLDER WORK POINT COUNT

kills its whole process group, Java included, with signal 9 before or after (POINT) the COUNT-th
compare-and-swap of a table.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dlt

import esker
import esker.dlt
from esker.engine.iceberg.commit import Attempt
from tests.scenarios.killed_run import kill

REPLACED = {"disposition": "merge", "strategy": "delete-insert"}


def resources(number: int) -> list[Any]:
    """Rows of a load: some are appended, some are merged, with others nested in them."""
    rows = [{"id": n, "load": number} for n in range(3)]
    nested = [row | {"lines": [{"sku": f"{number}-{row['id']}"}]} for row in rows]
    return [
        dlt.resource(rows, name="events", write_disposition="append"),
        dlt.resource(nested, name="orders", primary_key="id", write_disposition=REPLACED),
    ]


def pipeline(folder: Path, work: Path, **keys: Any) -> Any:
    return dlt.pipeline(
        "shop",
        destination=esker.dlt.destination(esker.open(folder), **keys),
        dataset_name="shop",
        pipelines_dir=str(work),
    )


def main(folder: str, work: str, point: str, count: int) -> None:
    seen = 0
    swap = Attempt.swap

    def dying(attempt: Attempt) -> None:
        nonlocal seen
        seen += 1
        if seen == count and point == "before":
            kill()
        swap(attempt)
        if seen == count:
            kill()

    with patch.object(Attempt, "swap", dying):
        pipeline(Path(folder), Path(work)).run(resources(2))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
