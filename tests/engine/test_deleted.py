"""Files of position deletes are read in every format in which engines write them."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from esker.engine.iceberg.deleted import positions_in
from esker.engine.store import LOCAL

DELETES = [
    {"file_path": "/lake/a.avro", "pos": 0},
    {"file_path": "/lake/a.avro", "pos": 2**33},
    {"file_path": "/lake/b.avro", "pos": 7},
]
AVRO = {
    "type": "record",
    "name": "position_delete",
    "fields": [{"name": "file_path", "type": "string"}, {"name": "pos", "type": "long"}],
}


@pytest.mark.parametrize("format", ["parquet", "orc", "avro"])
def test_position_deletes(tmp_path: Path, format: str) -> None:
    """An engine writes them in the format of the table, unless it is told otherwise."""
    path = tmp_path / f"deletes.{format}"
    rows = pa.Table.from_pylist(DELETES)
    match format:
        case "parquet":
            pq.write_table(rows, path)
        case "orc":
            orc.write_table(rows, path)
        case _:
            with path.open("wb") as stream:
                fastavro.writer(stream, AVRO, DELETES)
    found = positions_in(LOCAL, str(path), format)
    assert {name: list(positions) for name, positions in found.items()} == {
        "/lake/a.avro": [0, 2**33],
        "/lake/b.avro": [7],
    }
