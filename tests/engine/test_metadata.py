"""Metadata of tables that have the uuid of another one: copied, restored, or on another branch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.manifests import SpecField
from esker.engine.iceberg.metadata import is_same, metadata_of
from esker.engine.iceberg.table_state import opener
from tests.folder import Folder

pytestmark = pytest.mark.spark


def document(transform: str, updated: int = 1, snapshots: int = 0) -> str:
    """Return a metadata file of a table, partitioned by its only column."""
    fields = [{"id": 1, "name": "id", "required": False, "type": "long"}]
    field = {"name": "p", "transform": transform, "source-id": 1, "field-id": 1000}
    snapshot = {"snapshot-id": 7, "sequence-number": 1, "timestamp-ms": updated, "schema-id": 0}
    made = [{**snapshot, "summary": {"operation": "append"}, "manifest-list": "file:///t/m.avro"}]
    return json.dumps(
        {
            "format-version": 2,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "location": "file:///t",
            "last-sequence-number": snapshots,
            "last-updated-ms": updated,
            "last-column-id": 1,
            "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": [field]}],
            "last-partition-id": 1000,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {},
            "current-snapshot-id": 7 if snapshots else None,
            "snapshots": made[:snapshots],
        }
    )


def specs(jvm: Any, metadata: Any) -> tuple[SpecField, ...]:
    operations = iceberg(jvm, "StaticTableOperations")(metadata, None, None)
    table = iceberg(jvm, "BaseTable")(operations, "t")
    return metadata_of(opener(jvm).describe(table)).specs[0].fields


def test_what_tells_metadata_apart(folder: Folder) -> None:
    """Specs are those of the metadata itself; without a place, none is known to be another's."""
    jvm: Any = folder.open().engine.spark.sparkContext._jvm
    parser = iceberg(jvm, "TableMetadataParser")

    def parsed(location: str | None, text: str) -> Any:
        return parser.fromJson(location, text) if location is not None else parser.fromJson(text)

    one, other = (parsed("file:///t/1.json", document(kind)) for kind in ("bucket[4]", "bucket[16]"))
    assert specs(jvm, parser.fromJson(document("bucket[4]"))) == (SpecField(1, "bucket[4]"),)
    assert specs(jvm, parser.fromJson(document("bucket[16]"))) == (SpecField(1, "bucket[16]"),)
    # At places of their own: each file says what it says.
    assert specs(jvm, parsed("file:///t/4.json", document("bucket[4]"))) == (SpecField(1, "bucket[4]"),)
    assert specs(jvm, other) == (SpecField(1, "bucket[16]"),)

    assert is_same(one, parsed("file:///t/1.json", document("bucket[4]")))
    assert not is_same(one, parsed("file:///t/2.json", document("bucket[4]")))
    assert not is_same(one, parsed("file:///t/1.json", document("bucket[4]", updated=2)))
    assert not is_same(one, parsed("file:///t/1.json", document("bucket[4]", snapshots=1)))
    unplaced = parsed(None, document("bucket[4]"))
    assert not is_same(unplaced, unplaced)
