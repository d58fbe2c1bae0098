"""Metadata that is read from its file says what Java's objects say."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.document import Undecided, read_document
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.table import TableId, find_table
from esker.engine.session import Engine
from esker.engine.store import LOCAL
from esker.reading.documents import Documents
from tests.folder import Folder

pytestmark = pytest.mark.spark

MAKE: dict[str, list[str]] = {
    "empty": ["CREATE TABLE {t} (id int) USING iceberg"],
    "version 1": [
        "CREATE TABLE {t} (id int, day date) USING iceberg PARTITIONED BY (day) "
        "TBLPROPERTIES ('format-version' = '1')",
        "INSERT INTO {t} VALUES (1, date '2026-01-01')",
        "ALTER TABLE {t} DROP PARTITION FIELD day",
        "INSERT INTO {t} VALUES (2, date '2026-01-02')",
    ],
    "version 3": [
        "CREATE TABLE {t} (id int, at timestamp, text string) USING iceberg "
        "PARTITIONED BY (bucket(3, id), hours(at), truncate(2, text)) "
        "TBLPROPERTIES ('format-version' = '3', 'a key' = 'ä \"quoted\" ☃')",
        "INSERT INTO {t} VALUES (1, timestamp '2026-01-01 00:00:00', 'x')",
        "DELETE FROM {t} WHERE id = 1",
    ],
    "nested": [
        "CREATE TABLE {t} (s struct<a: int NOT NULL, b: struct<c: date>> NOT NULL COMMENT 'doc ☃', "
        "l array<struct<x: decimal(9,2)>>, m map<string, array<bigint>>) USING iceberg "
        "PARTITIONED BY (years(s.b.c))",
        "INSERT INTO {t} VALUES (named_struct('a', 1, 'b', named_struct('c', date '2026-01-01')), "
        "null, null)",
        "ALTER TABLE {t} RENAME COLUMN m TO `ein Name`",
        "ALTER TABLE {t} ADD COLUMN s.late string",
    ],
    "types": [
        "CREATE TABLE {t} (a boolean, b int, c bigint, d float, e double, f decimal(38,10), g date, "
        "h timestamp, i timestamp_ntz, j string, k binary) USING iceberg",
    ],
    "sorted": [
        "CREATE TABLE {t} (id int NOT NULL, text string) USING iceberg",
        "ALTER TABLE {t} WRITE ORDERED BY id DESC, text, truncate(3, text)",
        "ALTER TABLE {t} SET IDENTIFIER FIELDS id",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
    ],
    "branches": [
        "CREATE TABLE {t} (id int) USING iceberg",
        "INSERT INTO {t} VALUES (1)",
        "ALTER TABLE {t} CREATE BRANCH side",
        "INSERT INTO {t}.branch_side VALUES (2)",
        "ALTER TABLE {t} CREATE TAG mark",
        "INSERT INTO {t} VALUES (3)",
    ],
    "rolled back": [
        "CREATE TABLE {t} (id int) USING iceberg",
        "INSERT INTO {t} VALUES (1)",
        "ALTER TABLE {t} CREATE TAG first",
        "INSERT INTO {t} VALUES (2)",
        "CALL lake.system.set_current_snapshot(table => 'shop.odd', ref => 'first')",
        "INSERT INTO {t} VALUES (3)",
    ],
    "dropped columns": [
        "CREATE TABLE {t} (id int, day date, more string) USING iceberg PARTITIONED BY (day)",
        "INSERT INTO {t} VALUES (1, date '2026-01-01', 'x')",
        "ALTER TABLE {t} DROP PARTITION FIELD day",
        "ALTER TABLE {t} DROP COLUMN day",
        "ALTER TABLE {t} ADD PARTITION FIELD bucket(2, id)",
    ],
    "packed": [
        "CREATE TABLE {t} (id int) USING iceberg TBLPROPERTIES ('write.metadata.compression-codec' = 'gzip')",
        "INSERT INTO {t} VALUES (1)",
    ],
}
CATALOGS: dict[str, dict[str, Any]] = {
    "sqlite": {"type": "sqlite", "warehouse": "a place"},
    "hadoop": {"type": "hadoop", "warehouse": "wh"},
}


@pytest.fixture(params=CATALOGS)
def folder(request: pytest.FixtureRequest, make_folder: Callable[..., Folder]) -> Folder:
    return make_folder(catalog=CATALOGS[request.param])


def made(folder: Folder, statements: list[str]) -> tuple[Engine, TableId]:
    engine = folder.open().engine
    engine.open_catalog("lake")
    engine.spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    for statement in statements:
        engine.spark.sql(statement.format(t="lake.shop.odd")).collect()
    return engine, TableId("lake", "shop.odd")


@pytest.mark.parametrize("kind", MAKE)
def test_a_table_is_the_same_value(folder: Folder, kind: str) -> None:
    """Columns, layout, properties and snapshot are those that Java tells, and the newest ones."""
    engine, table = made(folder, MAKE[kind])
    expected = find_table(engine, table)
    found = Documents(engine.project).find(table)
    assert expected is not None
    assert found is not None
    assert json.loads(found.table.schema) == json.loads(expected.schema)
    assert place(found.table.version) == place(expected.version)
    assert replace(found.table, schema="", version="") == replace(expected, schema="", version="")
    assert (found.table.identifier, found.table.fields) == (expected.identifier, expected.fields)
    attempt = Attempt(engine, table)
    assert (found.uuid, found.current, found.sequence) == (attempt.uuid, attempt.current, attempt.sequence)
    assert paths(found.files.data) == paths(attempt.files.data)
    for spec in {file.spec_id for file in found.files.data}:
        assert found.files.spec_of(spec) == attempt.files.spec_of(spec)
    for column in expected.fields.ids:
        assert found.has_values_in(column) == attempt.has_values_in(column)
    for snapshot in found.snapshots:
        assert attempt.snapshot(snapshot.id) == snapshot
        here = found.history(snapshot.id, snapshot.sequence)
        assert here == attempt.history(snapshot.id, snapshot.sequence)
        assert found.descends(snapshot.id, snapshot.sequence) == here.descends
        assert paths(found.removed_data(snapshot)) == paths(attempt.removed_data(snapshot))
        key, value = "added-records", snapshot.summary.get("added-records", "none")
        assert found.last_snapshot_with(key, value) == attempt.last_snapshot_with(key, value)


def paths(files: Sequence[FileEntry] | None) -> list[str] | None:
    return None if files is None else [file.path for file in files]


def place(location: str | None) -> str:
    return (location or "").removeprefix("file:").replace("//", "/")


@pytest.mark.parametrize("kind", MAKE)
def test_what_pyiceberg_hands_out_is_the_same_value(make_folder: Callable[..., Folder], kind: str) -> None:
    """Catalogs that Esker does not read by itself are asked with PyIceberg, or left to Java."""
    engine, table = made(make_folder(), MAKE[kind])
    documents = Documents(engine.project)
    expected = documents.find(table)
    assert expected is not None
    found = documents._by_pyiceberg(table)
    assert found is not None
    # It names the columns that identify a row also where there are none.
    assert {"identifier-field-ids": []} | json.loads(expected.table.schema) == json.loads(found.table.schema)
    assert (found.table.identifier, found.table.fields) == (expected.table.identifier, expected.table.fields)
    assert replace(found.table, schema="", version="") == replace(expected.table, schema="", version="")
    assert found.snapshots == expected.snapshots
    assert paths(found.files.data) == paths(expected.files.data)
    assert documents._by_pyiceberg(TableId("lake", "shop.other")) is None


def test_a_table_that_is_not_there(folder: Folder) -> None:
    engine, table = made(folder, MAKE["empty"])
    documents = Documents(engine.project)
    assert documents.find(TableId("lake", "shop.other")) is None
    assert documents.find(TableId("lake", "nowhere.odd")) is None
    engine.spark.sql("DROP TABLE lake.shop.odd")
    assert documents.find(table) is None


def test_a_catalog_that_is_not_there_is_not_made(tmp_path: Path, spark_running: None) -> None:
    folder = Folder(tmp_path / "project")
    assert Documents(folder.open().project).find(TableId("lake", "shop.odd")) is None
    assert not (folder.path / ".esker").exists()


def test_an_expired_parent_is_left_to_java(folder: Folder) -> None:
    """Earlier metadata files are not looked into here."""
    inserts = [f"INSERT INTO {{t}} VALUES ({number})" for number in range(3)]
    engine, table = made(folder, ["CREATE TABLE {t} (id int) USING iceberg", *inserts])
    first = Attempt(engine, table).history(0, 0).newer[0]
    engine.spark.sql(
        "CALL lake.system.expire_snapshots(table => 'shop.odd', older_than => now(), retain_last => 1)"
    )
    found = Documents(engine.project).find(table)
    assert found is not None
    assert Attempt(engine, table).descends(first.id, first.sequence) is True
    with pytest.raises(Undecided):
        found.descends(first.id, first.sequence)


SPOILED: dict[str, Callable[[dict[str, Any]], object]] = {
    "a newer format": lambda content: content.update({"format-version": 4}),
    "no format": lambda content: content.pop("format-version"),
    "no schema": lambda content: content.update({"schemas": []}),
    "another schema": lambda content: content.update({"current-schema-id": 7}),
    "no spec": lambda content: content.update({"default-spec-id": 7}),
    "a snapshot that is gone": lambda content: content.update({"current-snapshot-id": 7}),
    "snapshots without manifests": lambda content: content["snapshots"][0].pop("manifest-list"),
    "a field of several columns": lambda content: content["partition-specs"][0]["fields"].append(
        {"source-ids": [1], "field-id": 1000, "name": "x", "transform": "bucket[2]"}
    ),
    "no properties of the right kind": lambda content: content.update({"snapshots": 7}),
}


@pytest.mark.parametrize("how", SPOILED)
def test_what_is_not_understood_is_left_to_java(make_folder: Callable[..., Folder], how: str) -> None:
    engine, table = made(make_folder(), MAKE["rolled back"])
    found = Documents(engine.project).find(table)
    assert found is not None
    content = json.loads(json.dumps(found.content))
    assert read_document(table, found.location, json.dumps(content), lambda: LOCAL) == found
    SPOILED[how](content)
    with pytest.raises(Undecided):
        read_document(table, found.location, json.dumps(content), lambda: LOCAL)


@pytest.mark.parametrize("content", [b"", b"{", b"\x1f\x8bbroken", b"\xff\xfe", b"[]", b"null", b"7"])
def test_a_file_that_is_damaged(make_folder: Callable[..., Folder], content: bytes) -> None:
    engine, table = made(make_folder(), MAKE["empty"])
    found = Documents(engine.project).find(table)
    assert found is not None
    path = Path(found.location.removeprefix("file:"))
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert Documents(engine.project).find(table) == found
    path.write_bytes(content)
    with pytest.raises(Undecided):
        Documents(engine.project).find(table)
    path.unlink()
    with pytest.raises(Undecided):
        Documents(engine.project).find(table)
