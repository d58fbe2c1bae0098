"""What PyIceberg is told of a catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.pipeline.export import export_reader
from esker.project import load_project
from esker.reading.settings import Unsuited, as_value, settings_of

GLUE = "project: shop\ncatalog: {type: glue, warehouse: 's3://lake/tables'}\n"


def told(folder: Path, store: str) -> dict[str, object]:
    (folder / "esker.yml").write_text(f"{GLUE}store: {{type: s3, region: eu-west-1, {store}}}\n")
    project = load_project(folder)
    return {name: as_value(each) for name, each in settings_of(project, project.catalog).items()}


def test_glue_gets_all_of_temporary_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KEY", "SECRET", "TOKEN"):
        monkeypatch.setenv(name, f"value-of-{name}")
    found = told(tmp_path, "access_key: '${KEY}', secret_key: '${SECRET}', session_token: '${TOKEN}'")
    assert found["glue.session-token"] == found["s3.session-token"] == "value-of-TOKEN"


@pytest.mark.parametrize(
    "catalog",
    [
        "{type: rest, uri: 'https://lake.example.com', properties: PROPERTIES}",
        "{type: s3tables, warehouse: 'arn:aws:s3tables:eu-west-1:123456789012:bucket/lake', "
        "properties: PROPERTIES}",
    ],
)
def test_headers_of_requests_come_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, catalog: str
) -> None:
    """A gateway in front of the catalog wants them of everybody. Their values are never printed."""
    monkeypatch.setenv("GATE", "open-sesame")
    properties = "{'header.X-Team': museum, Header.X-Api-Key: '${GATE}', client.timeout: '1'}"
    text = f"project: shop\ncatalog: {catalog.replace('PROPERTIES', properties)}\n"
    (tmp_path / "esker.yml").write_text(f"{text}store: {{type: s3, region: eu-west-1}}\n")
    project = load_project(tmp_path)
    found = settings_of(project, project.catalog)
    headers = {name: as_value(each) for name, each in found.items() if name.startswith("header.")}
    assert headers == {"header.X-Team": "museum", "header.X-Api-Key": "open-sesame"}
    assert "client.timeout" not in found
    bundle = export_reader(project, "pyiceberg")
    assert "open-sesame" not in bundle.text
    assert bundle.variables == ("GATE",)


def test_a_role_is_not_assumed_for_glue(tmp_path: Path) -> None:
    with pytest.raises(Unsuited, match="not for Glue"):
        told(tmp_path, "role: 'arn:aws:iam::111122223333:role/esker'")
