"""Tables and files in Azure are reached with a shared access signature, as with the account's key."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from esker.errors import StoreUnreachable
from tests.conformance.capabilities import upsert, works_of
from tests.conformance.lakes import Lake, made
from tests.folder import Folder
from tests.servers import azurite

_VERSION, _UNTIL = "2021-12-02", "2099-01-01T00:00:00Z"


def signature(rights: str = "rwdlac") -> str:
    """Return a signature of the whole account, as Azure's portal makes it."""
    parts = [azurite.ACCOUNT, rights, "b", "sco", "", _UNTIL, "", "https,http", _VERSION, "", ""]
    signed = hmac.new(base64.b64decode(azurite.KEY), "\n".join(parts).encode(), hashlib.sha256).digest()
    values = {"sv": _VERSION, "ss": "b", "srt": "sco", "sp": rights, "se": _UNTIL, "spr": "https,http"}
    values["sig"] = base64.b64encode(signed).decode()
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in values.items())


@pytest.mark.spark
@pytest.mark.server
@pytest.mark.soak
def test_a_shared_access_signature(
    request: pytest.FixtureRequest, tmp_path: Path, spark_running: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are loaded by Spark and by this process; one without rights is refused, and not told."""
    with made("sqlite-azure", request, tmp_path / "lake") as lake:
        token = signature()
        monkeypatch.setenv("AZURE_SAS", token)
        monkeypatch.delenv("AZURE_KEY")
        store = {name: value for name, value in lake.project["store"].items() if name != "account_key"}
        signed = replace(lake, project=lake.project | {"store": store | {"sas_token": "${AZURE_SAS}"}})
        upsert(signed, tmp_path / "work")
        _check_files(signed, tmp_path / "files")

        reading = signature("rl")
        monkeypatch.setenv("AZURE_SAS", reading)
        works = works_of(signed, tmp_path / "refused")
        before = works.rows()
        with pytest.raises(StoreUnreachable) as caught:
            works.load([{"id": 1, "at": 100, "name": "refused"}])
        assert works.rows() == before
        said = f"{caught.value.as_json()}{works.project.engine.log.read_text()}"
        for secret in (token, reading):
            assert secret.rpartition("sig=")[2] not in said


def _check_files(lake: Lake, path: Path) -> None:
    """Files of a container are a source, too."""
    container = lake.project["catalog"]["warehouse"].partition("//")[2].partition("@")[0]
    port = int(lake.project["store"]["endpoint"].rpartition(":")[2])
    with azurite.file_system(port).open_output_stream(f"{container}/raw/a.csv", compression=None) as stream:
        stream.write(b"id\n1\n2\n")
    source = {"connection": "raw"}
    pipeline = Folder.files_pipeline(f"az://{container}/raw/*.csv", table="shop.raw", source=source)
    connections = {"raw": lake.project["store"]}
    folder = Folder(path, **lake.project, connections=connections, pipelines={"raw": pipeline})
    assert folder.run("raw").rows.inserted == 2
