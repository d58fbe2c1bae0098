"""A catalog in a real PostgreSQL: shared by Spark and PyIceberg, its password told to nobody."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from esker.errors import CatalogUnreachable
from tests.command import finish, start
from tests.folder import Folder
from tests.servers.postgres import Database

WRONG = "mistaken-sesame"


def command_lines() -> list[str]:
    """Return the command lines of all processes of this machine, as everybody can read them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it has just ended
    return found


@pytest.mark.process
@pytest.mark.server
def test_a_pipeline_on_a_catalog_in_postgresql(database: Database, tmp_path: Path) -> None:
    """Rows arrive, PyIceberg reads them; a catalog that refuses the password stops its own pipeline only.

    No password is on a command line while the run lasts, in what it prints, or in its files.
    """
    lake = {
        "type": "jdbc",
        "url": f"jdbc:postgresql://{database.address}",
        "user": database.user,
        "password": "${LAKE_PASSWORD}",
        "warehouse": "lake",
    }
    folder = Folder(
        tmp_path / "project",
        catalog=lake,
        connections={"refusing": {**lake, "password": "${OTHER_PASSWORD}"}},
        state={
            "url": f"postgresql://{database.address}",
            "user": database.user,
            "password": "${LAKE_PASSWORD}",
        },
        pipelines={
            "sales": Folder.files_pipeline(),
            "refused": Folder.files_pipeline(table="shop.refused", catalog="refusing"),
        },
    )
    folder.write_csv("landing/a.csv", ["id", "name"], [[1, "amber"], [2, "basalt"]])

    process = start(
        folder.path, "run", "--json", env={"LAKE_PASSWORD": database.password, "OTHER_PASSWORD": WRONG}
    )
    seen: set[str] = set()
    while process.poll() is None:
        seen.update(command_lines())
        time.sleep(0.2)
    answer = finish(process)

    assert answer.status == 4, answer.stdout + answer.stderr
    results = {result["pipeline"]: result for result in answer.document["pipelines"]}
    sales, refused = results["sales"], results["refused"]
    assert (sales["status"], sales["rows"]["inserted"]) == ("succeeded", 2)
    assert refused["status"] == "failed"
    assert refused["error"]["code"] == CatalogUnreachable.code
    assert "refusing" in refused["error"]["message"]
    assert "authentication failed" in refused["error"]["reason"]

    address = f"postgresql+psycopg://{database.user}:{database.password}@{database.address}"
    with closing(load_catalog("lake", type="sql", uri=address, warehouse=f"{folder.path}/lake")) as catalog:
        rows = catalog.load_table("shop.sales").scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["name"]) for row in rows] == [(1, "amber"), (2, "basalt")]

    of_this_run = [line for line in seen if str(folder.path) in line]
    assert any("org.apache.spark" in line for line in of_this_run), "Java was seen at work"
    written = [path for path in (folder.path / ".esker").rglob("*") if path.is_file()]
    assert any(path.suffix == ".log" for path in written)
    for secret in (database.password, WRONG):
        assert not any(secret in line for line in seen)
        assert secret not in answer.stdout + answer.stderr
        assert not [path for path in written if secret.encode() in path.read_bytes()]
