"""Catalogs and stores on servers: what a project file may say of them, and what it is told otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.engine.catalogs import bind
from esker.engine.session import needed_jars
from esker.errors import InvalidProject
from esker.project import Project, load_project

LAKE = "catalog: {type: rest, uri: 'http://lake:8181/', warehouse: 's3://lake'"
STORE = "store: {type: s3, endpoint: 'http://lake:8333', path_style: true"
KEYS = "access_key: '${S3_KEY}', secret_key: '${S3_SECRET}'"


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("S3_KEY", "S3_SECRET", "CREDENTIAL"):
        monkeypatch.setenv(name, f"value-of-{name.lower()}")


def load(folder: Path, *lines: str) -> Project:
    (folder / "esker.yml").write_text("\n".join(["project: shop", *lines]) + "\n")
    return load_project(folder)


def problem(folder: Path, *lines: str) -> str:
    """Return the one problem of a project file."""
    with pytest.raises(InvalidProject) as caught:
        load(folder, *lines)
    [found] = caught.value.problems
    return str(found)


def test_what_iceberg_is_told(tmp_path: Path) -> None:
    """Each key reaches Iceberg under its own name; the client of S3 is fetched only for those who use S3."""
    project = load(tmp_path, LAKE + ", credential: '${CREDENTIAL}', scope: all}", STORE + ", " + KEYS + "}")
    settings = bind(project.catalog, project).settings
    assert settings["uri"] == "http://lake:8181"
    assert settings["credential"] == "value-of-credential"
    assert settings["oauth2-server-uri"] == "http://lake:8181/v1/oauth/tokens"
    assert settings["scope"] == "all"
    assert settings["s3.endpoint"] == "http://lake:8333"
    assert settings["s3.path-style-access"] == "true"
    assert settings["client.region"] == "us-east-1"
    assert (settings["s3.access-key-id"], settings["s3.secret-access-key"]) == (
        "value-of-s3_key",
        "value-of-s3_secret",
    )
    assert needed_jars(project) == ["iceberg", "aws"]
    for shown in (repr(project), repr(bind(project.catalog, project))):
        assert "value-of-" not in shown

    plain = load(tmp_path, "catalog: {type: rest, uri: 'http://lake:8181', warehouse: lake}")
    assert needed_jars(plain) == ["iceberg"]
    assert not [key for key in bind(plain.catalog, plain).settings if key.startswith("s3.")]


def test_each_catalog_may_have_a_store_of_its_own(tmp_path: Path) -> None:
    """A connection names another store; without that, the project's own one is meant."""
    project = load(
        tmp_path,
        STORE + "}",
        "connections:",
        "  far: {type: s3, region: eu-west-1}",
        "  near: {type: sqlite, path: near.db, warehouse: 's3://raw/near'}",
        "  old: {type: sqlite, path: old.db, warehouse: 's3://old', store: far}",
    )
    near, old = (bind(project.catalogs()[name], project).settings for name in ("near", "old"))
    assert (near["s3.endpoint"], near["client.region"]) == ("http://lake:8333", "us-east-1")
    assert ("s3.endpoint" in old, old["client.region"]) == (False, "eu-west-1")
    assert list(project.catalogs()) == ["lake", "near", "old"]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([LAKE + "}"], "catalog.warehouse: the warehouse is in S3: say how to reach it"),
        ([LAKE + ", store: raw}"], 'catalog.store: "raw" is no connection to a store'),
        ([LAKE + ", token: abc}", STORE + "}"], "catalog.token: a secret stands here as text"),
        (
            [LAKE + ", token: '${S3_KEY}', credential: '${CREDENTIAL}'}", STORE + "}"],
            "write credential or token, not both",
        ),
        ([LAKE + ", scope: all}", STORE + "}"], "scope is of no use without credential"),
        ([LAKE + ", properties: {uri: x}}", STORE + "}"], '"uri" has a key of its own: uri'),
        ([LAKE + ", properties: {header.token: x}}", STORE + "}"], "a secret stands here as text"),
        (["catalog: {type: rest, uri: 'http://lake/v1'}"], "leave it out"),
        (["catalog: {type: rest, uri: 'lake:8181'}"], "must begin with http:// or https://"),
        (["catalog: {type: rest, uri: 'http://me:pw@lake'}"], "the address holds credentials"),
        ([STORE + ", access_key: '${S3_KEY}'}"], "access_key is of no use without secret_key"),
        ([STORE + ", session_token: '${S3_KEY}'}"], "session_token is of no use without access_key"),
        (["store: {type: s3, endpoint: 'localhost:8333'}"], "must begin with http:// or https://"),
        (
            [
                "connections: {raw: {type: s3}}",
                "pipelines: {a: {source: {type: files, path: x, format: csv}, table: a.b, catalog: raw}}",
            ],
            '"raw" is no connection to a catalog',
        ),
    ],
)
def test_mistakes_are_named(lines: list[str], says: str, tmp_path: Path) -> None:
    """Each is found before anything starts."""
    assert says in problem(tmp_path, *lines)
