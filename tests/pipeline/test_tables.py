"""Esker's own tables are all in one registry."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import esker
from esker.ledger.side_table import SIDES
from esker.pipeline.sql.guard import managed_tables
from esker.pipeline.tables import own_tables, system_tables, table_of
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


def test_every_kind_is_known_to_everything(tmp_path: Path) -> None:
    """The guard of `esker sql`, `esker fsck` and the check of names know each kind that the registry has."""
    consumers = {"search": {"from": "sales", "id": ["id"], "to": {"type": "files", "path": "sent"}}}
    project = load_project(Folder(tmp_path, consumers=consumers).path)
    table = table_of(project, project.pipelines["sales"])
    looked_at = own_tables(project, table)
    assert {each.kind for each in looked_at} == set(ALL_KINDS)
    guarded = managed_tables(project)
    for each in looked_at:
        assert guarded[each.table.catalog, each.table.name].kind == each.kind
        assert reserved_ending(each.table.name.upper()) == each.kind.ending
    filled = {each.table.name for each in looked_at if each.kind.is_filled}
    assert filled == {f"shop.sales__{ending}" for ending in ("changes", "quarantine", "deletes", "quality")}
    # Each of these is registered in the table's properties, by which fsck finds what it lacks.
    assert len(filled) == len(SIDES)


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
