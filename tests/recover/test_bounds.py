"""Entries of data files with wrong bounds, as earlier versions wrote them, are found and corrected."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from esker.engine.iceberg import metrics, write
from esker.engine.iceberg.file_metrics import Told, suspects, wrong_metrics
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.schema import with_id
from esker.ledger.entry import read_head
from esker.recover.bounds import CorrectBounds
from tests.load.works import WORKS, Make, Works
from tests.recover.damage import findings, repair

_NAN = float("nan")
_COLUMNS = pa.schema(
    [("id", pa.decimal128(12, 2)), ("x", pa.float64()), ("kind", pa.string()), ("name", pa.string())]
)


def rows(numbers: range, name: str = "first") -> pa.Table:
    """Return rows with these keys, and NaN in each tenth."""
    ids = [Decimal(number) for number in numbers]
    values = [_NAN if number % 10 == 0 else float(number) for number in numbers]
    return pa.table([ids, values, ["k"] * len(ids), [name] * len(ids)], schema=_COLUMNS)


@pytest.fixture
def earlier(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Write entries as earlier versions did: decimals compared by their bytes, and no counts of NaN."""
    measured = metrics.metrics

    def told(*arguments: Any) -> dict[str, Any]:
        return measured(*arguments) | {"nan-value-counts": {"keys": [], "values": []}}

    def bounds(known: list[Any], kind: pa.DataType, nulls: int | None, values: int) -> Any:
        found = true(known, kind, nulls, values)
        if found is None or not pa.types.is_decimal(kind):
            return found
        low, high = min(each.min_raw for each in known), max(each.max_raw for each in known)
        return tuple(int.from_bytes(each, "big", signed=True) for each in (low, high))

    true = metrics._bounds
    with monkeypatch.context() as patch:
        patch.setattr(write, "_ROW_GROUP", 10)
        patch.setattr(write, "metrics", told)
        patch.setattr(metrics, "_bounds", bounds)
        yield patch


def entries(works: Works) -> list[Any]:
    """Return what the manifests say of each data file, but for its metrics."""
    facts = "snapshot_id, sequence_number, file_sequence_number"
    file = ("content", "file_path", "spec_id", "record_count", "split_offsets", "sort_order_id")
    names = ", ".join(f"data_file.{name}" for name in file)
    return works.sql(f"SELECT {facts}, {names} FROM {WORKS}.entries WHERE status < 2 ORDER BY file_path")


def seen(works: Works, version: int) -> list[str]:
    """Return what must stay: rows with their lineage, the change log, what manifests say but for metrics."""
    lineage = "_row_id, _last_updated_sequence_number, " if version >= 3 else ""
    rows = works.sql(f"SELECT {lineage}* FROM {WORKS} ORDER BY id")
    return [repr(each) for each in (rows, works.log(), entries(works))]


@pytest.mark.spark
@pytest.mark.parametrize(("version", "partitioned"), [(2, True), (3, False)])
def test_rows_that_readers_missed(
    make: Make, earlier: pytest.MonkeyPatch, version: int, partitioned: bool
) -> None:
    """Spark finds them again, the next batch updates each once, and no reader of changes sees a change."""
    layout = {"partition_by": ["kind"]} if partitioned else {}
    works = make(lane="small", format_version=version, columns={"id": "decimal(12,2)"}, **layout)
    works.load(rows(range(-5, 35)))
    works.load(rows(range(10, 14), "second"))
    earlier.undo()
    works.load(rows(range(100, 105)))
    missed = f"SELECT id FROM {WORKS} WHERE id < 0"
    assert len(works.sql(missed)) < 5, "the entries are wrong: otherwise this test says nothing"
    assert len(works.rows()) == 45, "deletes apply"
    before = seen(works, version)
    stored = {entry.file_path for entry in entries(works)}
    found = works.project.fsck()
    assert {finding.check for finding in findings(found)} == {"bounds"}
    what = "\n".join(each.what for each in findings(found) if each.file in stored)
    assert 'column "id": the manifest says 5.00 to 34.00, the file -5.00 to 34.00' in what
    assert 'column "x": 4 values are NaN' in what
    done = repair(works.project)
    assert {type(each) for each in done} == {CorrectBounds}

    assert findings(works.project.fsck(deep=True)) == []
    assert len(works.sql(missed)) == 5
    assert seen(works, version) == before
    [last] = works.sql(f"SELECT * FROM {WORKS}.snapshots ORDER BY committed_at DESC LIMIT 1")
    assert (last.operation, last.summary.get("esker.changeset")) == ("replace", None)
    head = read_head(works.properties())
    assert head is not None
    assert works.project.changes("shop.works", since=head.changeset).count() == 0
    result = works.load(rows(range(-5, 35), "third"))
    assert (result.rows.updated, result.rows.inserted, result.notes) == (40, 0, ())
    assert len(works.rows()) == 45
    works.sql(
        "CALL lake.system.expire_snapshots(table => 'shop.works', retain_last => 1, "
        "older_than => TIMESTAMP '2999-01-01 00:00:00')"
    )
    assert len(works.rows()) == 45
    assert findings(works.project.fsck(deep=True)) == []


@pytest.mark.spark
def test_table_that_moved_on(make: Make, earlier: pytest.MonkeyPatch) -> None:
    """What was found is right on every snapshot; files that are gone need no correction."""
    works = make(lane="small", columns={"id": "decimal(12,2)"}, changes="off")
    works.load(rows(range(-25, 15)))
    earlier.undo()
    found = works.project.fsck()
    [plan] = works.project.plan_repairs(found)
    works.load(rows(range(100, 105)))
    works.project.repair(found, plan)
    assert len(works.sql(f"SELECT id FROM {WORKS} WHERE id < 0")) == 25
    works.sql(f"DELETE FROM {WORKS} WHERE true")
    snapshots = works.snapshots()
    works.project.repair(found, plan)
    assert works.snapshots() == snapshots
    assert works.rows() == {}


def told(lower: dict[int, bytes], upper: dict[int, bytes], nans: dict[int, int]) -> Told:
    entry = FileEntry(0, "file:///f", "parquet", 4, 1, 1, 1, 1, 0, (), lower, upper, None, None, None)
    return Told(entry, 2, nans)


def test_what_is_wrong(tmp_path: Path) -> None:
    """Bounds that leave values out, and NaN that nobody counted; wider and missing bounds are right."""
    schema = pa.schema([with_id("d", pa.decimal128(9, 2), 1), with_id("x", pa.float32(), 2)])
    values = pa.table([[Decimal(n) for n in (-2, -1, 1, 2)], [1.0, _NAN, None, 2.0]], schema=schema)
    pq.write_table(values, tmp_path / "f", row_group_size=2)
    floats = bytes.fromhex("0000803F"), bytes.fromhex("00000040")

    def wrong(lower: int, upper: int, nans: dict[int, int]) -> Any:
        low, high = ((n * 100).to_bytes(3, "big", signed=True) for n in (lower, upper))
        said = told({1: low, 2: floats[0]}, {1: high, 2: floats[1]}, nans)
        with pq.ParquetFile(tmp_path / "f") as parquet:
            return wrong_metrics(said, parquet)

    assert wrong(-2, 2, {2: 1}) is None
    assert wrong(-3, 9, {2: 1}) is None
    for lower, upper in ((1, 2), (-2, -1), (1, -1)):
        found = wrong(lower, upper, {2: 1})
        assert (found.lower, found.upper, found.nans) == ({1: b"\xff\x38"}, {1: b"\x00\xc8"}, {})
    assert wrong(-2, 2, {}).nans == {2: 1}
    pq.write_table(values.filter(pc.is_finite(values["x"])), tmp_path / "f", row_group_size=2)
    assert wrong(-2, 2, {}) is None, "that nobody counted no NaN is not wrong"
    assert wrong(1, 2, {}).nans == {2: 0}, "but who corrects the entry writes it down"
    with pq.ParquetFile(tmp_path / "f") as parquet:
        assert wrong_metrics(told({}, {}, {}), parquet) is None


def test_which_files_are_opened() -> None:
    """Those with decimals in several row groups, and with floats that nobody counted the NaN of."""
    fields = [
        {"id": 1, "name": "d", "type": "decimal(9, 2)"},
        {"id": 2, "name": "s", "type": {"type": "struct", "fields": [{"id": 3, "type": "float"}]}},
        {"id": 4, "name": "l", "type": {"type": "list", "element-id": 5, "element": "double"}},
        {"id": 6, "name": "n", "type": "long"},
    ]
    chosen = suspects({"schemas": [{"fields": fields[:1]}, {"fields": fields}]})
    assert (set(chosen.decimals), set(chosen.floats)) == ({1}, {3})
    bound = {1: b"", 3: b"", 6: b""}
    assert told(bound, bound, {3: 0}) in chosen
    assert Told(told(bound, bound, {3: 0}).entry, 1, {3: 0}) not in chosen
    assert Told(told(bound, bound, {}).entry, 1, {}) in chosen
    assert told({6: b""}, {6: b""}, {}) not in chosen
    assert not suspects({"schemas": [{"fields": fields[3:]}]})
