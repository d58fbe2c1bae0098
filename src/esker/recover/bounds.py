"""Find entries of manifests that say something wrong of their files, and correct them by a commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.file_metrics import Correction, Told, suspects, wrong_metrics
from esker.engine.iceberg.manifest_files import ManifestBroken, read_told
from esker.engine.iceberg.table import TableId
from esker.engine.iceberg.table_files import TableFiles
from esker.engine.session import Engine
from esker.errors import RepairOutdated
from esker.recover.finding import Finding
from esker.recover.whole import AT_ONCE, manifests_of, snapshots_of

BOUNDS = "bounds"
"""The check that `--repair` mends by correcting the entries of files."""


@dataclass(frozen=True)
class CorrectBounds:
    """A commit that corrects what the manifests of main say of data files."""

    table: TableId
    corrections: tuple[Correction, ...] = field(repr=False)
    notes: tuple[str, ...] = (
        "no row changes: the files stay as they are, and readers of changes see none",
        "snapshots before it keep the wrong entries until they are expired",
    )

    def as_json(self) -> dict[str, Any]:
        return {
            "table": str(self.table),
            "repair": "correct_bounds",
            "files": [each.path for each in self.corrections],
            "notes": list(self.notes),
        }

    def apply(self, engine: Engine) -> None:
        """Do it, or raise RepairOutdated when somebody committed meanwhile.

        Files never change: what was found is right on whatever main is by now.
        """
        attempt = Attempt(engine, self.table)
        try:
            if attempt.correct(self.corrections, {"esker.repaired": BOUNDS}):
                attempt.swap()
        except (SwapFailed, ManifestBroken):
            raise RepairOutdated(str(self.table)) from None


def wrong_entries(
    files: TableFiles, document: Mapping[str, Any], *, deep: bool
) -> Iterator[tuple[Finding, Correction]]:
    """Yield the data files of main of which the manifests say something wrong.

    Only files that may be concerned are opened, unless the look is `deep`: those with decimals in several
    row groups, and those with floats of which nobody has counted the NaN.
    """
    columns = suspects(document)
    snapshot = snapshots_of(document).get(document.get("current-snapshot-id"))
    if snapshot is None or not (columns or deep):
        return

    def compared(told: Told) -> Correction | None:
        # What is wrong with a file itself, the walk tells.
        with suppress(OSError, pa.ArrowException), files.open(told.entry.path) as stream:
            return wrong_metrics(told, pq.ParquetFile(stream))
        return None

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="esker-fsck") as pool:
        try:
            manifests = manifests_of(files, snapshot)
        except ManifestBroken:
            return
        for manifest in manifests:
            with suppress(ManifestBroken):
                chosen = [told for told in read_told(files, manifest) if deep or told in columns]
                for told, found in zip(chosen, pool.map(compared, chosen), strict=True):
                    if found is not None:
                        yield _finding(told, found), found


def _finding(told: Told, found: Correction) -> Finding:
    return Finding(
        BOUNDS,
        f"a manifest says something wrong of a data file: {'; '.join(found.what)}",
        "Whoever looks for rows by these columns may leave the file out, and a DELETE by another engine may "
        "take rows with it that it does not name.",
        "esker fsck --repair corrects the entry. The file is as it should be, and no row changes.",
        found.path,
        told.entry.snapshot,
    )
