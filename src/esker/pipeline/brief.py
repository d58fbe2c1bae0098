"""Whether runs read little, as far as it can be told before Spark starts.

Only of files on this machine: their sizes are known at once. Whatever may take longer than it takes Java to
compile well, or cannot be told, is not brief: other sources, families of tables, and audits, for which Spark
reads the table as well.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from itertools import islice

from esker.project import Project
from esker.project.contract.model import Contract, Reference, Unique
from esker.project.sources import FilesSource

MOST = 32_000_000
"""Bytes, unpacked. A load of 80 MB takes as long with the one as with the other."""
_MOST_FILES = 1000
"""More are not looked at: the run itself lists them all."""
_UNPACKED = 10
"""How much packed files grow, at most and about; those of formats that pack by themselves, too."""
_TEXT = (".csv", ".txt", ".json", ".jsonl", ".ndjson", ".xml")


def is_brief(project: Project, names: Sequence[str]) -> bool:
    """Tell whether runs of the named pipelines, or of all, read little."""
    if project.families:
        return False
    room = MOST
    for name in names or project.pipelines:
        pipeline = project.pipeline(name)
        source = pipeline.source
        if not isinstance(source, FilesSource) or source.address is not None or pipeline.lane == "large":
            return False
        if _reads_the_table(project.contract(name)):
            return False
        room -= _size(project, source)
        if room < 0:
            return False
    return True


def _reads_the_table(contract: Contract | None) -> bool:
    """Tell whether Spark reads tables, of any size, to check a batch."""
    if contract is None:
        return False
    return bool(contract.audits) or any(isinstance(rule, Unique | Reference) for rule in contract.rules)


def _size(project: Project, source: FilesSource) -> int:
    """Return about how many bytes there are to read, loaded or not; more than any where they are many."""
    found = glob.iglob(source.path, root_dir=project.folder, recursive=True)  # noqa: PTH207 (as the reader)
    names = list(islice(found, _MOST_FILES + 1))
    if len(names) > _MOST_FILES:
        return MOST + 1
    try:
        return sum((project.folder / name).stat().st_size * _growth(name) for name in names)
    except OSError:
        return MOST + 1  # the run says what is wrong


def _growth(name: str) -> int:
    return 1 if name.lower().endswith(_TEXT) else _UNPACKED
