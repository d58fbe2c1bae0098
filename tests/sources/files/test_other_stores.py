"""Files in Azure and in Google Cloud Storage are loaded as those in S3 are. Needs their emulators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from esker.errors import FileChanged, FileGone, SourceNotFound
from esker.sources.files.bucket import Bucket
from tests.folder import Folder
from tests.servers import azurite, fake_gcs

pytestmark = [pytest.mark.spark, pytest.mark.server, pytest.mark.soak]


@pytest.fixture(params=["azure", "gcs"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, dict[str, Any], fs.FileSystem]]:
    """How addresses begin, the connection, and the files themselves."""
    place = tmp_path / "server"
    place.mkdir()
    if request.param == "azure":
        monkeypatch.setenv("AZURE_KEY", azurite.KEY)
        with azurite.running_azurite(place) as port:
            endpoint = f"http://127.0.0.1:{port}"
            keys = {"account": azurite.ACCOUNT, "account_key": "${AZURE_KEY}", "endpoint": endpoint}
            yield "az://", {"type": "azure", **keys}, azurite.file_system(port)
        return
    with fake_gcs.running_fake_gcs(place) as port:
        connection = {"type": "gcs", "endpoint": f"http://127.0.0.1:{port}", "anonymous": True}
        yield "gs://", connection, fake_gcs.file_system(port)


def test_each_file_once_and_whole(
    store: tuple[str, dict[str, Any], fs.FileSystem],
    make_folder: Callable[..., Folder],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheme, connection, files = store
    files.create_dir("raw")

    def put(name: str, text: str) -> None:
        with files.open_output_stream(f"raw/{name}", compression=None) as stream:
            stream.write(text.encode())

    def declare(path: str) -> None:
        source = {"connection": "landing", "partitions": ["day"]}
        folder.document["pipelines"]["sales"] = Folder.files_pipeline(f"{scheme}{path}", source=source)
        folder.save()

    folder = make_folder(connections={"landing": connection})
    declare("raw/in/**/*.csv")
    assert folder.run().rows.read == 0
    put("in/day=2026-01-01/a b.csv", "id\n1\n")
    put("in/day=2026-01-02/c.csv", "id\n2\n")
    put("out/day=2026-01-02/d.csv", "id\n9\n")
    assert folder.run().rows.inserted == 2
    assert [(number, str(day)) for number, day in folder.rows()] == [(1, "2026-01-01"), (2, "2026-01-02")]
    assert folder.run().rows.read == 0

    put("in/day=2026-01-03/e.csv", "id\n3\n")
    listed = Bucket.list

    def then_gone(place: Bucket) -> Any:
        found = listed(place)
        files.delete_file("raw/in/day=2026-01-03/e.csv")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Bucket, "list", then_gone)
        with pytest.raises(FileGone, match=r"day=2026-01-03/e\.csv"):
            folder.run()
    put("in/day=2026-01-02/c.csv", "id\n2\n3\n")
    with pytest.raises(FileChanged):
        folder.run()
    declare("nobody/*.csv")
    with pytest.raises(SourceNotFound):
        folder.run()
