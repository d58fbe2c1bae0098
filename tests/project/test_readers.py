"""`readers:` of a pipeline: what is picked for them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from esker.errors import InvalidProject
from esker.project import Pipeline, load_project
from esker.project.readers import READERS, ReaderName, contradictions, unreadable_columns
from esker.project.types import Column, parse_type
from tests.conformance.results import FILE

HEAD = """
project: shop
pipelines:
  sales:
    source: {type: files, path: "landing/*.csv", format: csv}
    table: shop.sales
"""


def load(folder: Path, *lines: str) -> Pipeline:
    (folder / "esker.yml").write_text(HEAD.lstrip() + "".join(f"    {line}\n" for line in lines))
    return load_project(folder).pipelines["sales"]


def test_what_is_picked(tmp_path: Path) -> None:
    """All read it, and the reasons are those of its readers."""
    encoding = load(tmp_path, "readers: [spark, trino, athena, snowflake, redshift]").encoding()
    assert str(encoding) == "format version 2, Parquet with zstd"
    assert encoding.reasons == (
        "no format version 3: Trino 476 cannot read it (it reads no deletion vectors)",
        "no format version 3: Athena cannot read it (it reads tables of version 1 and 2)",
    )


def test_what_is_said_is_kept(tmp_path: Path) -> None:
    """Where all readers know it."""
    codec = "properties: {write.parquet.compression-codec: snappy}"
    found = load(tmp_path, "readers: [spark, snowflake]", "format_version: 3", codec)
    assert str(found.encoding()) == "format version 3, Parquet with snappy"
    assert str(load(tmp_path, "readers: [spark, pyiceberg]", "format: orc").encoding()) == (
        "format version 2, Orc"
    )


@pytest.mark.parametrize(
    ("lines", "place", "message"),
    [
        (
            ["readers: [trino]", "format_version: 3"],
            (7, 5),
            "Trino 476 cannot read tables of format version 3: it reads no deletion vectors; Trino reads "
            "them from 480 on: leave trino out of readers: where it is that new",
        ),
        (
            ["format_version: 3", "readers: [snowflake, athena]"],
            (6, 5),
            "Athena cannot read tables of format version 3: it reads tables of version 1 and 2; write "
            "format_version: 2, or leave athena out of readers:",
        ),
        (
            ["readers: [spark, pyiceberg]", "format: avro"],
            (7, 5),
            "PyIceberg 0.12 reads data files in parquet and orc, and not in avro; write format: parquet, or "
            "leave pyiceberg out of readers:",
        ),
        (
            ["readers: [duckdb]", "properties: {write.parquet.compression-codec: lz4}"],
            (7, 18),
            "DuckDB 1.5 is not known to read lz4 in Parquet; it reads zstd, snappy, gzip and uncompressed; "
            "write another write.parquet.compression-codec, or leave duckdb out of readers:",
        ),
        (
            ["readers: [redshift]", "columns:", "  id: bigint", "  tokens: array<uuid>"],
            (9, 7),
            'Redshift is not known to read type uuid of column "tokens"; give it another type, or leave '
            "redshift out of readers:",
        ),
        (["readers: [trino, trino]"], (6, 5), "a reader stands there twice"),
    ],
)
def test_contradictions(tmp_path: Path, lines: list[str], place: tuple[int, int], message: str) -> None:
    """Each is told at its place, with what to do."""
    with pytest.raises(InvalidProject) as caught:
        load(tmp_path, *lines)
    [problem] = caught.value.problems
    assert problem.message == message
    assert (problem.line, problem.column) == place


def test_a_reader_that_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(InvalidProject) as caught:
        load(tmp_path, "readers: [trnio]")
    assert "trino" in str(caught.value)


def test_a_contract_that_contradicts(tmp_path: Path) -> None:
    """What a contract says counts as said."""
    (tmp_path / "sales.odcs.yaml").write_text(
        "{apiVersion: v3.1.0, kind: DataContract, id: s, version: 1.0.0, status: active, "
        "schema: [{name: sales, customProperties: [{property: format, value: orc}], "
        "properties: [{name: id, logicalType: integer}]}]}"
    )
    with pytest.raises(InvalidProject, match=r"DuckDB 1\.5 reads data files in parquet, and not in orc"):
        load(tmp_path, "readers: [duckdb]", "contract: sales.odcs.yaml")


def test_facts_are_those_that_were_seen() -> None:
    """What real readers did with each encoding is what the table of facts says of them."""
    seen = json.loads(FILE.read_text(encoding="utf-8"))["encodings"]
    assert set(READERS) == set(get_args(ReaderName))
    for encoding, cells in seen.items():
        said: dict[str, int | str] = {}
        columns = []
        if encoding.startswith("format version"):
            said["format_version"] = int(encoding.split()[2].rstrip(","))
        elif encoding.startswith("parquet, "):
            said["codec"] = encoding.removeprefix("parquet, ")
        elif encoding in ("avro", "orc"):
            said["format"] = encoding
        else:
            parts = {
                "fixed": "fixed(4)",
                "array": "array<int>",
                "map": "map<int,int>",
                "struct": "struct<a:int>",
            }
            columns.append(Column("value", parse_type(parts.get(encoding, encoding))))
        for name in (name for name in READERS if name in cells):
            refused = [*contradictions([name], **said), *unreadable_columns([name], columns)]  # type: ignore[arg-type]
            assert bool(refused) == (cells[name]["found"] != "yes"), (name, encoding)
