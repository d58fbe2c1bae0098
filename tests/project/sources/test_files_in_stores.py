"""What `esker check` says about files in stores, and about the keys of the newer formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from esker.engine.session import needed_jars
from esker.errors import InvalidProject
from esker.project import Project, load_project
from esker.project.secrets import redact
from esker.project.sources import FilesSource
from esker.project.sources.store_address import store_address

KEYS = "access_key: '${S3_KEY}', secret_key: '${S3_SECRET}'"


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("S3_KEY", "S3_SECRET"):
        monkeypatch.setenv(name, f"value-of-{name.lower()}")


def load(folder: Path, source: str, *lines: str) -> Project:
    pipelines = [
        "pipelines:",
        "  orders:",
        f"    source: {{type: files, {source}}}",
        "    table: shop.orders",
    ]
    (folder / "esker.yml").write_text("\n".join(["project: shop", *lines, *pipelines]) + "\n")
    return load_project(folder)


@pytest.mark.parametrize(
    ("text", "scheme", "path", "account"),
    [
        ("s3://lake/in/*.csv", "s3", "lake/in/*.csv", None),
        ("s3a://lake/in/*.csv", "s3", "lake/in/*.csv", None),
        ("gs://lake/**/*.csv", "gs", "lake/**/*.csv", None),
        ("az://raw/x.csv", "az", "raw/x.csv", None),
        ("abfss://raw@shop.dfs.core.windows.net/x.csv", "abfss", "raw/x.csv", "shop"),
    ],
)
def test_addresses(text: str, scheme: str, path: str, account: str | None) -> None:
    found = store_address(text)
    assert found is not None
    assert (found.scheme, found.path, found.account) == (scheme, path, account)


def test_paths_are_no_addresses() -> None:
    assert store_address("landing/*.csv") is None
    assert FilesSource(path="file:///data/*.csv", format="csv").path == "/data/*.csv"


@pytest.mark.parametrize(
    ("source", "lines", "why"),
    [
        ("path: 'ftp://x/*.csv', format: csv", [], 'files cannot be read from "ftp://"'),
        ("path: 's3://lake', format: csv", [], "write which files: s3://lake/*.csv"),
        ("path: 's3://l*/a.csv', format: csv", [], "is no name of a bucket"),
        ("path: 's3://key:secret@lake/a.csv', format: csv", [], "is no name of a bucket"),
        ("path: 's3://lake/../a.csv', format: csv", [], "nothing but dots"),
        ("path: 'abfss://raw/a.csv', format: csv", [], "write abfss://container@account"),
        ("path: 'az://raw/a.csv', format: csv", [], "say which account"),
        ("path: 'a.csv', format: csv, connection: lake", [], "files on a disk need no connection"),
        ("path: 's3://lake/a.csv', format: csv, connection: lake", [], '"lake" is no connection to a store'),
        (
            "path: 's3://lake/a.csv', format: csv, connection: lak",
            ["connections:", "  lake: {type: s3}"],
            'did you mean "lake"?',
        ),
        (
            "path: 'gs://lake/a.csv', format: csv, connection: lake",
            ["connections:", "  lake: {type: s3}"],
            '"lake" is of type s3, and the path of gcs',
        ),
        (
            "path: 'abfss://raw@one.dfs.core.windows.net/a.csv', format: csv, connection: lake",
            ["connections:", "  lake: {type: azure, account: two22}"],
            "is account two22, and the path of one",
        ),
        (
            "path: 's3://lake/a.csv', format: csv, connection: lake",
            ["connections:", "  lake: {type: s3, anonymous: true, " + KEYS + "}"],
            "write keys, or anonymous: true, not both",
        ),
        (
            "path: 'az://raw/a.csv', format: csv, connection: lake",
            ["connections:", "  lake: {type: azure, account: shop, client_id: me}"],
            "client_id is of no use without tenant_id",
        ),
        (
            "path: 'az://raw/a.csv', format: csv, connection: lake",
            ["connections:", "  lake: {type: azure, account: shop, account_key: abc}"],
            "a secret stands here as text",
        ),
        ("path: a.xml, format: xml", [], "xml needs row_tag:"),
        ("path: a.csv, format: csv, row_tag: row", [], "row_tag has a meaning for format: xml only"),
        ("path: a.csv, format: csv, partitions: []", [], "write true, or the names of folders"),
        ("path: a.csv, format: csv, partitions: [day, 'a b']", [], '"a b" is no name of letters'),
        ("path: a.csv, format: csv, partitions: day", [], "write true, or the names of folders"),
        ("path: a.json, format: json, encoding: latin-1", [], "JSON is UTF-8"),
        ("path: a.avro, format: avro, options: {avroSchema: '{}'}", [], "would leave out"),
        ("path: a.xml, format: xml, row_tag: r, options: {rowTag: x}", [], "is set by Esker"),
        ("path: a.csv, format: csv, max_bytes: 0", [], "max_bytes"),
    ],
)
def test_mistakes_are_told_with_their_place(tmp_path: Path, source: str, lines: list[str], why: str) -> None:
    with pytest.raises(InvalidProject) as caught:
        load(tmp_path, source, *lines)
    [problem] = caught.value.problems
    assert why in str(problem)
    assert "esker.yml:" in str(problem)
    assert "value-of-" not in str(problem)


def test_tables_are_not_written_without_a_key(tmp_path: Path) -> None:
    with pytest.raises(InvalidProject, match="anonymous"):
        load(
            tmp_path,
            "path: a.csv, format: csv",
            "catalog: {type: sqlite, warehouse: 's3://lake'}",
            "store: {type: s3, anonymous: true}",
        )


def test_what_is_declared_is_found(tmp_path: Path) -> None:
    """A connection keeps its secrets; the jar of Avro is fetched only for those who read Avro."""
    project = load(
        tmp_path,
        "path: 's3://lake/*.avro', format: avro, connection: lake, partitions: [day], max_bytes: 1GB",
        "connections:",
        "  lake: {type: s3, endpoint: 'http://lake:8333', path_style: true, " + KEYS + "}",
    )
    source: Any = project.pipelines["orders"].source
    assert (source.max_bytes, source.partitions) == (10**9, ("day",))
    assert project.store_connection("lake") is project.connections["lake"]
    assert project.store_connection(None) is None
    assert needed_jars(project) == ["iceberg", "sqlite", "avro"]
    assert "value-of-" not in repr(project)


def test_signature_of_a_token_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure's client writes the parts of a token in another order."""
    monkeypatch.setenv("SAS", "?sv=2026&sig=abcdef%2Bghi%3D&se=2027")
    load(
        tmp_path,
        "path: 'az://raw/a.csv', format: csv, connection: lake",
        "connections: {lake: {type: azure, account: shop, sas_token: '${SAS}'}}",
    )
    told = redact("https://shop.blob.core.windows.net/raw?se=2027&sig=abcdef%2Bghi%3D&sv=2026 abcdef+ghi=")
    assert "abcdef" not in told


def test_row_tag_and_format_go_together() -> None:
    assert FilesSource(path="a.xml", format="xml", row_tag="book").row_tag == "book"
    with pytest.raises(ValidationError):
        FilesSource(path="a.xml", format="yaml")
