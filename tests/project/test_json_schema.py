"""The JSON Schema that editors use agrees with what `esker check` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from esker.errors import InvalidProject
from esker.project import load_project
from esker.project.json_schema import json_schema
from esker.project.scaffold import write_sample

BASE = """\
project: shop
pipelines:
  sales:
    source: {type: files, path: a, format: csv}
    table: shop.sales
"""


def is_valid(document: Any) -> bool:
    return bool(Draft202012Validator(json_schema()).is_valid(document))


def test_the_schema_is_a_schema() -> None:
    """It is valid draft 2020-12, and says so."""
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)


def test_the_sample_project_fits_the_schema(tmp_path: Path) -> None:
    """`esker init` writes a file that no editor marks as wrong."""
    write_sample(tmp_path / "sample")
    assert is_valid(YAML(typ="safe").load(tmp_path / "sample" / "esker.yml"))


@pytest.mark.parametrize(
    "extra",
    [
        "    columns: {id: bigint, at: {type: timestamp, required: true, doc: x}}",
        "    every: 15m",
        "    properties: {write.target-file-size-bytes: 1000, a: true, b: c}",
        "spark: {master: yarn, conf: {spark.executor.cores: 2}}",
        "state: {url: 'postgresql://db/state', user: me, password: '${PW}'}",
        "defaults: {source: {delimiter: ;}, format_version: 3}",
        "  shop: {source: {type: jdbc, url: 'jdbc:sqlite:x', tables: [a, b_*], exclude: [c]}, "
        "table: 'a.{table}', overrides: {a: {mode: append, source: {cursor: null}}}}",
        "environments: {prod: {spark: {master: yarn}, pipelines: {sales: {every: 1h}}}}",
        "connections: {other: {type: jdbc, url: 'jdbc:postgresql://db/x', warehouse: w}}\n",
        "store: {type: s3, region: eu-west-1, path_style: true}",
        "connections: {far: {type: rest, uri: 'https://c', token: '${PW}', store: raw}, raw: {type: s3}}",
    ],
)
def test_what_esker_accepts_the_schema_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: str
) -> None:
    """An editor never marks a right file as wrong."""
    monkeypatch.setenv("PW", "hush-hush")
    (tmp_path / "esker.yml").write_text(BASE + extra)
    assert load_project(tmp_path)
    assert is_valid(YAML(typ="safe").load(tmp_path / "esker.yml"))


@pytest.mark.parametrize(
    "extra",
    [
        "    tabel: x.y",
        "    columns: {id: {type: int, requird: true}}",
        "    mode: apend",
        "    format_version: 1",
        "spark: {mastr: yarn}",
        "catalog: {type: sqlite, pth: x}",
        "catalog: {type: rest}",
        "catlog: {}",
        "defaults: {tabel: x.y}",
    ],
)
def test_what_esker_refuses_the_schema_refuses(tmp_path: Path, extra: str) -> None:
    """A mistake shows in the editor already."""
    (tmp_path / "esker.yml").write_text(BASE + extra)
    with pytest.raises(InvalidProject):
        load_project(tmp_path)
    assert not is_valid(YAML(typ="safe").load(tmp_path / "esker.yml"))
