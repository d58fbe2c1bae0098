"""What is written for other readers works there, and holds no secret."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlglot

from esker.cli.export import Target
from esker.errors import CannotExport
from esker.pipeline.export import PLATFORMS, READERS, export_reader
from esker.project import load_project
from tests.folder import Folder
from tests.servers.seaweedfs import SeaweedFS

KEYS = {"access_key": "${LAKE_KEY}", "secret_key": "${LAKE_SECRET}"}
S3 = {"type": "s3", "region": "eu-west-1", **KEYS}
REST = {"type": "rest", "uri": "https://catalog.example.org", "warehouse": "lake"}
VALUES = {"LAKE_KEY": "AKIA0123", "LAKE_SECRET": "very secret 1", "LAKE_CREDENTIAL": "very:secret 2"}


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Write a project with a catalog, and return what is exported for a reader."""
    for name, value in VALUES.items():
        monkeypatch.setenv(name, value)

    def export(reader: str, catalog: dict[str, Any], store: dict[str, Any] | None = None) -> str:
        folder = Folder(tmp_path / "project", catalog=catalog, **({"store": store} if store else {}))
        return export_reader(load_project(folder.path), reader).text

    return export


def test_trino(declared: Callable[..., str]) -> None:
    rest = REST | {"credential": "${LAKE_CREDENTIAL}"}
    assert declared("trino", rest, S3).splitlines() == [
        "connector.name=iceberg",
        "iceberg.catalog.type=rest",
        "iceberg.rest-catalog.uri=https://catalog.example.org",
        "iceberg.rest-catalog.warehouse=lake",
        "iceberg.rest-catalog.security=OAUTH2",
        "iceberg.rest-catalog.oauth2.credential=${ENV:LAKE_CREDENTIAL}",
        "iceberg.rest-catalog.oauth2.server-uri=https://catalog.example.org/v1/oauth/tokens",
        "fs.native-s3.enabled=true",
        "s3.region=eu-west-1",
        "s3.aws-access-key=${ENV:LAKE_KEY}",
        "s3.aws-secret-key=${ENV:LAKE_SECRET}",
    ]


def test_athena(declared: Callable[..., str]) -> None:
    """One comment and one query, which Athena's grammar takes, of a table that is there by that name."""
    bucket = "arn:aws:s3tables:eu-west-1:111122223333:bucket/lake"
    for catalog, first, words in (
        ({"type": "glue", "warehouse": "s3://lake/w"}, "AwsDataCatalog", "without further settings"),
        (
            {"type": "glue", "warehouse": "s3://lake/w", "account": "123456789012"},
            "AwsDataCatalog",
            "123456789012",
        ),
        ({"type": "s3tables", "warehouse": bucket}, "s3tablescatalog/lake", "integrated"),
    ):
        text = declared("athena", catalog, S3)
        note, query = text.splitlines()
        assert note.startswith("-- ")
        assert words in note
        assert query == f'SELECT * FROM "{first}"."shop"."sales" LIMIT 10;'
        [parsed] = sqlglot.parse(text, dialect="athena")
        assert parsed is not None
        [table] = parsed.find_all(sqlglot.exp.Table)
        assert (table.catalog, table.db, table.name) == (first, "shop", "sales")


CATALOGS: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "sqlite": ({"type": "sqlite"}, None),
    "jdbc": (
        {
            "type": "jdbc",
            "url": "jdbc:postgresql://db/lake",
            "user": "me",
            "password": "${LAKE_SECRET}",
            "warehouse": "s3://lake/w",
        },
        S3,
    ),
    "rest": (REST | {"credential": "${LAKE_CREDENTIAL}"}, S3),
    "s3tables": (
        {"type": "s3tables", "warehouse": "arn:aws:s3tables:eu-west-1:111122223333:bucket/lake"},
        S3,
    ),
    "glue": ({"type": "glue", "warehouse": "s3://lake/w"}, S3),
    "hive": ({"type": "hive", "uri": "thrift://meta:9083", "warehouse": "s3://lake/w"}, S3),
    "nessie": (
        {"type": "nessie", "uri": "http://nessie:19120/api/v2", "warehouse": "s3://lake/w"},
        S3,
    ),
    "hadoop": ({"type": "hadoop", "warehouse": "lake"}, None),
}
NOT_FOR = {
    "trino": {"sqlite", "hadoop"},
    "pyiceberg": {"nessie", "hadoop"},
    "duckdb": {"jdbc", "hive", "nessie", "hadoop"},
    "athena": set(CATALOGS) - {"glue", "s3tables"},
}


@pytest.mark.parametrize("kind", CATALOGS)
@pytest.mark.parametrize("reader", READERS)
def test_every_catalog_is_told_or_refused(declared: Callable[..., str], reader: str, kind: str) -> None:
    """Without the value of any secret, and as code that can be read."""
    if kind in NOT_FOR[reader]:
        with pytest.raises(CannotExport) as caught:
            declared(reader, *CATALOGS[kind])
        assert len(caught.value.reason) > 20
        return
    text = declared(reader, *CATALOGS[kind])
    assert not any(value in text for value in VALUES.values())
    if reader in ("duckdb", "pyiceberg"):
        compile(text, reader, "exec")


def test_duckdb_opens_google_with_an_hmac_key(declared: Callable[..., str]) -> None:
    """It takes nothing else; without one that is said."""
    catalog = {"type": "sqlite", "warehouse": "gs://lake/w"}
    keys = {"hmac_key": "${LAKE_KEY}", "hmac_secret": "${LAKE_SECRET}"}
    text = declared("duckdb", catalog, {"type": "gcs", **keys})
    assert "TYPE gcs" in text
    assert "LAKE_KEY" in text
    assert not any(value in text for value in VALUES.values())
    compile(text, "duckdb", "exec")
    with pytest.raises(CannotExport) as caught:
        declared("duckdb", catalog, {"type": "gcs"})
    assert "hmac_key: and hmac_secret:" in caught.value.reason


def test_the_command_line_knows_all_targets() -> None:
    """It lists them itself: help waits for nothing that an export needs."""
    assert sorted(each.value for each in Target) == sorted((*READERS, *PLATFORMS))


def test_an_unknown_catalog(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "project")
    with pytest.raises(CannotExport, match="pyiceberg") as caught:
        export_reader(load_project(folder.path), "pyiceberg", "nowhere")
    assert '"nowhere"' in caught.value.reason


def printed(text: str, folder: Path) -> str:
    """Run an exported program in a process of its own, and return what it prints."""
    program = folder / "read.py"
    program.write_text(text)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", program],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.spark
@pytest.mark.process
def test_pyiceberg_reads_the_embedded_catalog(folder: Folder, tmp_path: Path) -> None:
    folder.write_csv("landing/a.csv", ["id"], [["1"], ["2"]])
    folder.run()
    text = export_reader(load_project(folder.path), "pyiceberg").text
    assert "[{'id': 1}, {'id': 2}]" in printed(text, tmp_path)


@pytest.mark.spark
@pytest.mark.process
@pytest.mark.server
def test_pyiceberg_reads_a_rest_catalog(
    make_folder: Callable[..., Folder], seaweedfs: SeaweedFS, tmp_path: Path
) -> None:
    folder = make_folder(catalog=seaweedfs.catalog(seaweedfs.new_warehouse()), store=seaweedfs.store())
    folder.document["pipelines"]["sales"]["table"] = "exported.sales"
    folder.save()
    folder.write_csv("landing/a.csv", ["id"], [["1"], ["2"]])
    folder.run()
    text = export_reader(load_project(folder.path), "pyiceberg").text
    assert "[{'id': 1}, {'id': 2}]" in printed(text, tmp_path)
