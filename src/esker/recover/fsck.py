"""Look at a table from the catalog's pointer down to its files. Nothing is changed.

The table need not load: a metadata file that cannot be read is the first thing that is looked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from esker.engine.iceberg.metadata_file import MetadataBroken, parsed, read_document
from esker.engine.iceberg.pointers import NotServed, Pointer, pointers_of
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.recover.bookkeeping import Bookkeeping
from esker.recover.bounds import wrong_entries
from esker.recover.finding import Examined, Finding
from esker.recover.walk import Walk

METADATA = "metadata"
"""The check that `--repair` mends by going back to an earlier metadata file."""
COPY = "metadata_copy"
"""The check that `--repair` mends by a commit: the server has the metadata, only its file is broken."""


def examine(engine: Engine, table: TableId, *, deep: bool = False) -> Examined:
    """Look at one table: metadata, manifests and files. Raises CatalogUnreachable and StoreUnreachable."""
    try:
        pointer = pointers_of(engine, table.catalog).read(table.name)
    except NotServed as error:
        refused = Finding(
            METADATA,
            f"the catalog does not hand the table out: {error}",
            "No engine can load it. Which metadata file it should have, only the server knows.",
            "Look into the server's log. If the file is broken, who runs the server must restore it.",
        )
        return Examined(table, findings=(refused,))
    if pointer is None:
        return Examined(table)
    findings: list[Finding] = []
    try:
        document = read_document(engine, pointer.files, pointer.location)
    except MetadataBroken as error:
        if pointer.served is None:
            return Examined(table, pointer, findings=(_broken(table, pointer, error),))
        findings.append(_broken_copy(table, pointer, error))
    if pointer.served is not None:
        document = parsed(engine, pointer.served)  # the server's word counts
    walk = Walk(pointer.files, document, deep, findings)
    checked = walk.all()
    wrong = list(wrong_entries(pointer.files, document, deep=deep))
    return Examined(
        table,
        pointer,
        document,
        (*walk.findings, *(finding for finding, _ in wrong)),
        checked,
        tuple(correction for _, correction in wrong),
    )


def with_bookkeeping(engine: Engine, examined: Examined, beside: Mapping[str, Examined]) -> Examined:
    """Return a table together with what does not fit in its ledger and in the tables beside it."""
    if examined.document is None:
        return examined
    found = Bookkeeping(engine, examined.table, examined.properties, beside).findings()
    return replace(examined, findings=(*examined.findings, *found))


def _broken(table: TableId, pointer: Pointer, error: MetadataBroken) -> Finding:
    return Finding(
        METADATA,
        f"the metadata file that the catalog points to cannot be used: {error}",
        "No engine can load the table. Its data files are not touched by that.",
        "Restore the file from the store's older versions or a backup, under the same name. Without one, go "
        f"back to the newest metadata file that is whole: esker fsck {table} --repair",
        pointer.location,
    )


def _broken_copy(table: TableId, pointer: Pointer, error: MetadataBroken) -> Finding:
    return Finding(
        COPY,
        f"the metadata file cannot be used: {error}",
        "The server has the metadata itself and goes on. Whoever reads the file, such as a backup, fails.",
        f"The next commit writes another file; esker fsck {table} --repair makes one. Nothing is lost.",
        pointer.location,
    )
