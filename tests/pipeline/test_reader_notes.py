"""A plan says how a table is written for its readers, and what of it they cannot read."""

from __future__ import annotations

import pytest

from tests.folder import Folder

pytestmark = pytest.mark.spark


def notes(folder: Folder) -> list[str]:
    [plan] = folder.open().plan()
    return [note for note in plan.notes if note != "the source has nothing new"]


def test_what_is_picked_is_told(folder: Folder) -> None:
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.change(readers=["trino", "duckdb"])
    assert notes(folder) == [
        "written for Trino 476, DuckDB 1.5: format version 2, Parquet with zstd; no format version 3: "
        "Trino 476 cannot read it (it reads no deletion vectors)"
    ]
    folder.run()
    assert notes(folder) == [], "the table is as its readers need it"


def test_a_table_that_is_there_already(folder: Folder) -> None:
    """What its readers cannot read of it is told; it is not changed."""
    folder.write_csv("landing/a.csv", ["id", "token"], [(1, "f79c3e09-677c-4bbd-a479-3f349cb785e7")])
    codec = {"write.parquet.compression-codec": "lz4"}
    folder.change(columns={"token": "uuid"}, format_version=3, properties=codec)
    folder.run()
    for key in ("columns", "format_version", "properties"):
        del folder.document["pipelines"]["sales"][key]
    folder.change(readers=["athena"])
    assert notes(folder) == [
        "the table is there already, and Athena cannot read tables of format version 3: it reads tables of "
        "version 1 and 2",
        "the table is there already, and Athena is not known to read lz4 in Parquet; it reads zstd, snappy, "
        "gzip and uncompressed",
        'Athena is not known to read type uuid of column "token"; give it another type, or leave athena out '
        "of readers:",
    ]
    folder.write_csv("landing/b.csv", ["id"], [(2,)])
    assert folder.run().rows.inserted == 1
