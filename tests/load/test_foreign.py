"""Rows that other engines changed: their hash says nothing, so they are compared by content."""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
import pytest

from esker.engine.iceberg.table import TableId
from esker.errors import PartitionColumnDropped
from esker.ledger.change_log import CHANGESET, HASH_AFTER, HASH_BEFORE, OP
from esker.ledger.foreign import FOREIGN
from tests.folder import Folder
from tests.load.works import WORKS, Make, Row, Works, both_lanes, large_in_soak
from tests.reading.deletes_by_value import delete_by_value

pytestmark = pytest.mark.spark


def rows(*numbers: int, title: str = "a") -> list[Row]:
    return [{"id": number, "title": title} for number in numbers]


def marked(works: Works) -> list[list[int]]:
    found: list[list[int]] = json.loads(works.properties().get(FOREIGN, "[]"))
    return found


def hashes(works: Works) -> dict[int, int]:
    return {row.id: row._esker_hash for row in works.sql(f"SELECT id, _esker_hash FROM {WORKS}")}


@large_in_soak
@pytest.mark.parametrize("how", ["copy-on-write", "merge-on-read"])
def test_update_by_another_engine(make: Make, lane: str, how: str) -> None:
    """No difference is missed, and none is made up, however many batches later a row is touched."""
    works = make(lane=lane, properties={"write.update.mode": how})
    works.load(rows(1, 2, 3, 4, 5, 6))
    true = hashes(works)
    works.sql(f"UPDATE {WORKS} SET title = 'b' WHERE id IN (1, 2, 3, 4)")
    assert hashes(works) == true, "another engine keeps the old hash: otherwise this test says nothing"
    changed = works.snapshots()[-1]

    first = works.load([*rows(1), *rows(2, title="b"), *rows(7)])
    (note,) = first.notes
    assert str(changed) in note
    assert "compared by content" in note
    assert (first.rows.updated, first.rows.unchanged, first.rows.inserted) == (1, 1, 1)
    works.load(rows(8))  # and a batch that has nothing to do with it
    late = works.load([*rows(3), *rows(4, title="b"), *rows(5, 6)])
    assert late.notes == ()
    assert (late.rows.updated, late.rows.unchanged) == (1, 3)
    assert {number: row["title"] for number, row in works.rows().items()} == {
        **dict.fromkeys((1, 3, 5, 6, 7, 8), "a"),
        **dict.fromkeys((2, 4), "b"),
    }
    (update,) = [row for row in works.log() if row[CHANGESET] == 4]
    assert (update[OP], update[HASH_AFTER]) == ("update", true[3])
    assert update[HASH_BEFORE] not in (None, true[3])


@large_in_soak
def test_wrong_hash_does_not_outlive_a_delete(make: Make, lane: str) -> None:
    """A soft delete writes the row anew: with the hash of its content, not with the one that it found."""
    works = make(lane=lane)
    works.load(rows(1, 2))
    true = hashes(works)
    works.sql(f"UPDATE {WORKS} SET title = 'b' WHERE id = 1")
    works.load([{"id": 1, "title": None, "deleted": True}])
    assert works.rows()[1] == {"id": 1, "title": "b", "deleted": True}
    assert hashes(works)[1] != true[1]


@large_in_soak
def test_compaction_keeps_trust_and_doubt(make: Make, lane: str) -> None:
    """Compaction of Esker's own rows costs nothing; that of foreign ones keeps them in doubt."""
    works = make(lane=lane)
    compact = (
        "CALL lake.system.rewrite_data_files(table => 'shop.works', options => map('rewrite-all', 'true'))"
    )
    works.load(rows(1, 2, 3))
    works.load(rows(4, 5, 6))
    works.sql(compact)
    result = works.load(rows(1, 7))
    assert (result.notes, result.rows.unchanged, marked(works)) == ((), 1, [])

    works.sql(f"UPDATE {WORKS} SET title = 'b' WHERE id IN (1, 2, 3)")
    works.sql(compact)
    works.sql(
        "CALL lake.system.expire_snapshots(table => 'shop.works', retain_last => 1, "
        "older_than => TIMESTAMP '2999-01-01 00:00:00')"
    )
    result = works.load(rows(1, 4))
    assert len(result.notes) == 1
    assert (result.rows.updated, result.rows.unchanged) == (1, 1)
    works.sql(compact)
    result = works.load([*rows(2, title="b"), *rows(3)])
    assert (result.rows.updated, result.rows.unchanged) == (1, 1)
    assert len(marked(works)) == 1

    works.sql(f"DELETE FROM {WORKS}")  # no file of theirs is left: nothing to remember
    works.load(rows(1))
    assert marked(works) == []


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("partition_by", [[], ["bucket(2, id)"]], ids=["whole", "partitioned"])
def test_rows_that_another_engine_deleted_by_value(make: Make, version: int, partition_by: list[str]) -> None:
    """Its delete files name no places: they are carried into no delete of ours, and delete what they did."""
    works = make(format_version=version, partition_by=partition_by)
    works.load(rows(1, 2, 3, 4, 5))
    works.load(rows(5, title="b"))

    def delete(*ids: int) -> None:
        if partition_by:  # deletes of a table without partitions are of all files, whatever their partitions
            works.sql(f"ALTER TABLE {WORKS} DROP PARTITION FIELD bucket(2, id)")
        table = TableId("lake", "shop.works")
        delete_by_value(works.project.engine, table, *({"id": number} for number in ids))

    delete(1, 4)
    found = works.load(
        [*rows(1, 2, title="c"), {"id": 3, "title": None, "deleted": True}, *rows(5, title="b")]
    )
    assert (found.rows.inserted, found.rows.updated, found.rows.unchanged) == (1, 1, 1)
    assert found.rows.deleted == 1
    assert {number: (row["title"], row["deleted"]) for number, row in works.rows().items()} == {
        1: ("c", False),
        2: ("c", False),
        3: ("a", True),
        5: ("b", False),
    }
    delete(2)
    assert works.load(rows(2, 5, title="d")).rows.inserted == 1
    assert {number: row["title"] for number, row in works.rows().items()} == {1: "c", 2: "d", 3: "a", 5: "d"}


def test_foreign_commits_are_forgotten_with_their_files(make: Make) -> None:
    """Only commits whose files are still there are remembered."""
    works = make(lane="small")
    works.load(rows(1))
    many = [[10 * number, 10 * number + number % 3] for number in range(1, 400)]
    works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('{FOREIGN}' = '{json.dumps([[0, 1], *many])}')")
    works.sql(f"INSERT INTO {WORKS} SELECT 2, 'a', false, _esker_hash + 1 FROM {WORKS}")
    works.load(rows(1, 2, 3))
    assert marked(works) == [[0, 2]]
    assert works.load(rows(1, 2, 3)).rows.unchanged == 3


def test_rows_without_a_number_outlive_a_delete_of_lower_ones(make: Make) -> None:
    """NaN is not below 5: another engine may not take a file for one whose rows all are."""
    works = make(lane="small", format_version=2)
    nan = float("nan")
    kinds = {"id": pa.int64(), "x": pa.float64(), "inside": pa.struct({"y": pa.float32()})}
    columns = [range(4), [1.0, nan, None, 2.0], [{"y": 1.0}, {"y": nan}, None, {"y": 2.0}]]
    works.load(
        pa.table(
            [pa.array(values, kind) for values, kind in zip(columns, kinds.values(), strict=True)], [*kinds]
        )
    )
    [file] = works.sql(f"SELECT nan_value_counts c FROM {WORKS}.data_files")
    assert sorted(file.c.values()) == [1, 1]
    for column in ("x", "inside.y"):
        works.sql(f"DELETE FROM {WORKS} WHERE {column} < 5 OR {column} IS NULL AND id = 77")
        assert 1 in works.rows(), column
    works.sql(f"DELETE FROM {WORKS} WHERE x < 5")
    assert {1, 2} == set(works.rows())


def test_table_of_format_version_1(make_folder: Callable[..., Folder]) -> None:
    """Its manifests leave out what came with version 2; a rewrite by others stops no later run."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(mode="append")})
    engine = folder.open().engine
    engine.open_catalog("lake")
    spark = engine.spark
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    spark.sql("CREATE TABLE lake.shop.sales (id bigint) USING iceberg TBLPROPERTIES ('format-version' = '1')")
    for number in range(3):
        folder.write_csv(f"landing/{number}.csv", ["id"], [(number,)])
        assert folder.run().rows.inserted == 1
        spark.sql(f"INSERT INTO lake.shop.sales VALUES ({10 + number})")
        spark.sql("CALL lake.system.rewrite_data_files('shop.sales', options => map('rewrite-all', 'true'))")
    assert [row[0] for row in folder.rows()] == [0, 1, 10, 11, 12, 2]


@both_lanes
def test_partition_field_that_is_void(make: Make, lane: str) -> None:
    """Format version 1 keeps a field that was dropped; with its column gone, Iceberg's Spark writer fails."""
    works = make(partition_by=["bucket(2, id)"], lane=lane)
    works.project.engine.open_catalog("lake")
    works.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    works.sql(
        f"CREATE TABLE {WORKS} (id bigint NOT NULL, title string, site string, day date) USING iceberg "
        "PARTITIONED BY (site, days(day), bucket(2, id)) TBLPROPERTIES ('format-version' = '1')"
    )
    works.sql(f"ALTER TABLE {WORKS} DROP PARTITION FIELD site")
    works.sql(f"ALTER TABLE {WORKS} DROP PARTITION FIELD days(day)")
    works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('format-version' = '2')")
    assert works.load(rows(1, 2)).rows.inserted == 2
    works.sql(f"ALTER TABLE {WORKS} DROP COLUMN site")
    if lane == "large":
        with pytest.raises(PartitionColumnDropped, match=r"shop\.works"):
            works.load(rows(3))
        return
    works.load(rows(2, 3, title="b"))
    assert {row["id"]: row["title"] for row in works.read()} == {1: "a", 2: "b", 3: "b"}
