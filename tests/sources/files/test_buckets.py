"""Files in an S3 store are loaded as those on a disk are, once and whole."""

from __future__ import annotations

import bz2
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from esker.engine import file_systems
from esker.errors import (
    FileChanged,
    FileChangedWhileReading,
    FileGone,
    SourceNotFound,
    SourceUnavailable,
)
from esker.events import Event, Reached, Step
from esker.pipeline.doctor_spark import sources_in_stores
from esker.sources.files import bucket as bucket_module
from esker.sources.files import reader
from tests.folder import Folder
from tests.servers.proxy import CLOSED, CUT, SILENT, Proxy, running_proxy
from tests.servers.seaweedfs import BUCKET, KEY, SeaweedFS

pytestmark = [pytest.mark.spark, pytest.mark.server]


class Shop:
    """A project that reads from a place of its own in a bucket."""

    def __init__(self, server: SeaweedFS, make_folder: Callable[..., Folder]) -> None:
        self.server, self.address = server, server.new_prefix()
        self.prefix = self.address.removeprefix("s3://")
        self.folder = make_folder(connections={"landing": server.store()})
        self.files = fs.S3FileSystem(
            access_key=KEY,
            secret_key=server.secret,
            endpoint_override=server.endpoint,
            region="us-east-1",
        )

    def declare(self, pattern: str, format: str = "csv", *, mode: str = "append", **source: Any) -> None:
        keys = {"connection": "landing", **source}
        self.folder.document["pipelines"]["sales"] = Folder.files_pipeline(
            f"{self.address}/{pattern}", format, source=keys, mode=mode
        )
        self.folder.save()

    def put(self, name: str, content: str | bytes) -> None:
        with self.files.open_output_stream(f"{self.prefix}/{name}", compression=None) as stream:
            stream.write(content.encode() if isinstance(content, str) else content)

    def delete(self, name: str) -> None:
        self.files.delete_file(f"{self.prefix}/{name}")


@pytest.fixture
def shop(seaweedfs: SeaweedFS, make_folder: Callable[..., Folder]) -> Shop:
    return Shop(seaweedfs, make_folder)


def spools() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("esker-files-*"))


def test_each_file_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of all kinds, packed files, new ones, little room; no copy is left, and no secret told."""
    before = spools()
    monkeypatch.setattr(reader, "_MOST_COPIED", 40)
    shop.declare("in/**/*")
    shop.put("in/a b.csv", "id,name\n1,one\n")
    shop.put("in/x/c%20d,[1].csv", "id,name\n2,two\n")
    shop.put("in/x/e.csv.bz2", bz2.compress(b"id,name\n3,three\n"))
    shop.put("in/x/f.csv.zst", pa.compress(b"id,name\n4,four\n", codec="zstd", asbytes=True))
    shop.put("in/_hidden.csv", "id,name\n8,eight\n")
    shop.put("other/g.csv", "id,name\n9,nine\n")
    assert shop.folder.open().read("sales").sort_by("id").column("name").to_pylist() == [
        "one",
        "two",
        "three",
        "four",
    ]
    told: list[Event] = []
    result = shop.folder.run(listen=told.append)
    assert (result.rows.inserted, result.batches) == (4, 3)
    assert shop.folder.rows() == [(1, "one"), (2, "two"), (3, "three"), (4, "four")]
    assert shop.folder.run().rows.read == 0
    shop.put("in/x/h.csv", "id,name\n5,\nx,six\n")
    with pytest.raises(Exception, match="do not fit") as caught:
        shop.folder.run()
    assert "h.csv: " in str(getattr(caught.value, "reason", ""))
    assert spools() == before
    assert shop.server.secret not in f"{told} {result} {shop.folder.open().project!r} {caught.value!r}"


def test_parquet_in_folders_of_a_bucket(shop: Shop) -> None:
    """Types, columns from folders, whole replacement; a file that is taken away takes its rows away."""
    shop.declare("lake/*/*.parquet", "parquet", mode="replace", partitions=["day"])
    for day, ids in (("2026-01-01", [1, 2]), ("2026-01-02", [3])):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": ids}), sink)
        shop.put(f"lake/day={day}/part.parquet", sink.getvalue().to_pybytes())
    assert shop.folder.open().peek("sales").origins == ("part.parquet",)
    shop.folder.run()
    assert [(number, str(day)) for number, day in shop.folder.rows()] == [
        (1, "2026-01-01"),
        (2, "2026-01-01"),
        (3, "2026-01-02"),
    ]
    shop.delete("lake/day=2026-01-01/part.parquet")
    shop.folder.run()
    assert [row[0] for row in shop.folder.rows()] == [3]


def test_file_that_changes_after_it_was_loaded(shop: Shop) -> None:
    shop.declare("*.csv")
    shop.put("a.csv", "id\n1\n")
    assert shop.folder.run().rows.inserted == 1
    shop.put("a.csv", "id\n1\n2\n")
    with pytest.raises(FileChanged, match="1 loaded file changed"):
        shop.folder.run()
    shop.declare("*.csv", on_changed="ignore")
    assert shop.folder.run().rows.read == 0


@pytest.mark.parametrize("fate", ["gone", "cut", "same size", "while it is read"])
def test_file_that_is_no_longer_what_was_listed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, fate: str
) -> None:
    """Nothing of the batch is loaded; the next run takes what is there then."""
    text = "id\n" + "\n".join(str(number) for number in range(1000)) + "\n"
    shop.declare("*.csv")
    shop.put("a.csv", "id\n-1\n")
    shop.put("b.csv", text)
    listed = bucket_module.Bucket.list

    def change() -> None:
        if fate == "gone":
            shop.delete("b.csv")
        elif fate == "cut":
            shop.put("b.csv", text[: len(text) // 2])
        else:
            time.sleep(1.1)  # times are whole seconds there
            shop.put("b.csv", text.replace("5", "6"))

    def then_changed(place: bucket_module.Bucket) -> Any:
        found = listed(place)
        change()
        return found

    if fate == "while it is read":
        copied = shutil.copyfileobj

        def slowly(source: Any, target: Any, size: int) -> None:
            target.write(source.read(100))
            change()
            copied(source, target, size)

        monkeypatch.setattr(shutil, "copyfileobj", slowly)
    else:
        monkeypatch.setattr(bucket_module.Bucket, "list", then_changed)
    with pytest.raises(FileGone if fate == "gone" else FileChangedWhileReading) as caught:
        shop.folder.run()
    assert f"{shop.address}/b.csv" in caught.value.message
    monkeypatch.undo()
    assert not list(shop.folder.path.glob(".esker/warehouse/shop/sales/data/**/*.parquet"))
    if fate != "same size":
        return
    assert shop.folder.run().rows.inserted == 1001
    assert shop.folder.run().rows.read == 0


def test_what_happens_after_the_copy_is_a_matter_of_the_next_run(shop: Shop) -> None:
    shop.declare("*.csv")
    shop.put("a.csv", "id\n1\n")

    def replaced(event: Event) -> None:
        if isinstance(event, Reached) and event.step is Step.PLANNED:
            shop.put("a.csv", "id\n1\n2\n")

    assert shop.folder.run(listen=replaced).rows.inserted == 1
    with pytest.raises(FileChanged):
        shop.folder.run()


def test_store_that_is_not_there(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing below a prefix is nothing to do; no such bucket and wrong keys are errors."""
    shop.declare("nothing/*.csv")
    assert shop.folder.run().rows.read == 0
    [found] = sources_in_stores(shop.folder.open().project)
    assert (found.check, found.ok) == ("source of sales", True)
    assert found.detail.startswith("0 files match s3://")
    source = shop.folder.document["pipelines"]["sales"]["source"]
    shop.folder.change(source={**source, "path": "s3://no-such-bucket/*.csv"})
    with pytest.raises(SourceNotFound) as missing:
        shop.folder.run()
    assert "s3://no-such-bucket" in missing.value.message
    monkeypatch.setenv("S3_SECRET", "another-secret")
    shop.declare("*.csv")
    with pytest.raises(SourceUnavailable) as caught:
        shop.folder.run()
    [found] = sources_in_stores(shop.folder.open().project)
    assert not found.ok
    assert shop.address in caught.value.message
    assert "another-secret" not in f"{caught.value.message}{caught.value.reason}{caught.value.remedy}"


LIST, READ = f"/{BUCKET}", "in/a.csv"


@pytest.fixture
def between(seaweedfs: SeaweedFS, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A line to the store that can be broken, before a project that reads two files."""
    monkeypatch.setattr(file_systems, "_ANSWER_SECONDS", 1)
    shop.declare("in/*.csv")
    shop.put("in/a.csv", "id,name\n" + "".join(f"{number},{'x' * 100}\n" for number in range(500)))
    shop.put("in/b.csv", "id,name\n1000,last\n")
    with running_proxy(seaweedfs.endpoint) as proxy:
        shop.folder.document["connections"] = {"landing": seaweedfs.store(proxy.address)}
        shop.folder.save()
        yield proxy


@pytest.mark.parametrize("fault", ["500", "429", CLOSED, CUT, SILENT])
def test_faults_that_pass(shop: Shop, between: Proxy, fault: str) -> None:
    """Met by a list and twice by a file: the store is asked again, and every row is there once."""
    between.lose_answer("GET", LIST, fault)
    between.lose_answer("GET", READ, fault, times=2)
    assert shop.folder.run().rows.inserted == 501
    assert not between.is_waiting
    assert sorted(row[0] for row in shop.folder.rows("shop.sales", "id")) == [*range(500), 1000]


@pytest.mark.parametrize("fault", ["500", CUT])
def test_faults_that_stay(shop: Shop, between: Proxy, fault: str) -> None:
    """A bounded number of tries, nothing half loaded, and the next run has all."""
    between.lose_answer("GET", READ, fault, times=100)
    with pytest.raises(SourceUnavailable) as caught:
        shop.folder.run()
    assert shop.address in caught.value.message
    assert caught.value.exit_status == 4
    assert sum(str(each).endswith(READ) for each in between.traffic.exchanges) <= 20
    between.mend()
    assert shop.folder.run().rows.inserted == 501
