"""Esker's own tables are all in one registry."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import esker
from esker.pipeline.tables import is_record, system_tables, tables_beside
from esker.project import load_project
from esker.project.system_tables import ALL_KINDS, reserved_ending
from tests.folder import Folder


def test_every_table_of_a_project(tmp_path: Path) -> None:
    """Two pipelines of one table share what lies beside it; a consumer's dead letters are its own."""
    keys: dict[str, Any] = {"mode": "upsert", "key": ["id"]}
    pipelines = {name: Folder.files_pipeline(f"{name}/*.csv", table="shop.works", **keys) for name in "ab"}
    consumers = {"search": {"from": "b", "to": {"type": "files", "path": "sent"}}}
    for namespace, beside in ((None, "shop.works"), ("esker", "esker.shop__works")):
        system = {"system_namespace": namespace} if namespace else {}
        folder = Folder(tmp_path / beside, pipelines=pipelines, consumers=consumers, **system)
        project = load_project(folder.path)
        found = {(each.table.name, each.pipeline) for each in system_tables(project)}
        endings = ("files", "changes", "quarantine", "deletes", "quality", "positions")
        wanted = {(f"{beside}__{ending}", name) for ending in endings for name in "ab"}
        assert found == wanted | {(f"{namespace or 'shop'}.search__dead", "b")}


def test_records(tmp_path: Path) -> None:
    project = load_project(Folder(tmp_path).path)
    table = next(system_tables(project)).table
    beside = tables_beside(project, type(table)(table.catalog, "shop.sales"))
    assert {each.name for each in beside if is_record(each)} == {"shop.sales__files", "shop.sales__positions"}


def test_endings_are_written_down_once() -> None:
    """No other module spells the ending of a table: what the registry does not have, nothing guards."""
    root = Path(esker.__file__).parent
    spelled = re.compile(r"""["'](__[a-z]+)["']""")
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        for ending in spelled.findall(path.read_text())
        if not ending.endswith("__") and reserved_ending(ending)
    }
    assert found == {"project/system_tables.py"}
    assert len({kind.ending for kind in ALL_KINDS}) == len(ALL_KINDS)
