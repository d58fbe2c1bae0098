"""A file that goes away, is cut or grows while a run is under way: told by name, and never half loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.errors import EskerError, FileChangedWhileReading, FileGone
from esker.events import Event, Reached, Step
from esker.sources.files.listing import LocalDisk
from tests.folder import Folder

pytestmark = pytest.mark.spark


def write(path: Path, format: str) -> bytes:
    if format == "parquet":
        pq.write_table(pa.table({"id": range(2000)}), path)
    else:
        path.write_text("id\n" + "\n".join(str(number) for number in range(2000)) + "\n")
    return path.read_bytes()


def spoil(path: Path, fate: str) -> None:
    if fate == "gone":
        path.unlink()
    else:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])


def refused(folder: Folder, listen: Callable[[Event], None] = lambda _: None) -> EskerError:
    with pytest.raises((FileGone, FileChangedWhileReading)) as caught:
        folder.run(listen=listen)
    assert "landing/b" in caught.value.message
    if (folder.path / ".esker/warehouse/shop/sales").exists():
        assert folder.rows() == []
    return caught.value


@pytest.mark.parametrize(("format", "fate"), [("csv", "gone"), ("csv", "cut"), ("parquet", "cut")])
def test_after_listing_and_while_reading(
    make_folder: Callable[..., Folder], monkeypatch: pytest.MonkeyPatch, format: str, fate: str
) -> None:
    folder = make_folder(pipelines={"sales": Folder.files_pipeline("landing/*", format)})
    write(folder.path / "landing" / "a", format)
    path = folder.path / "landing" / "b"
    content = write(path, format)
    kind = FileGone if fate == "gone" else FileChangedWhileReading
    listed = LocalDisk.list

    def then_spoilt(place: LocalDisk) -> object:
        found = listed(place)
        spoil(path, fate)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(LocalDisk, "list", then_spoilt)
        assert isinstance(refused(folder), kind)
    path.write_bytes(content)

    def spoil_it(event: Event) -> None:
        if isinstance(event, Reached) and event.step is Step.READ:
            spoil(path, fate)

    assert isinstance(refused(folder, spoil_it), kind)
    path.write_bytes(content)
    assert folder.run().rows.inserted == 4000
    assert folder.run().rows.read == 0
