"""Projects whose pipeline `sales` has a contract, for tests."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent, indent
from typing import Any

from tests.folder import Folder

MakeFolder = Callable[..., Folder]
FILE = "contracts/sales.odcs.yaml"


def contract(properties: str, quality: str = "", *, status: str = "active") -> str:
    """Return a contract for a table `sales`: its properties, and what holds for the whole table."""
    text = f"""\
apiVersion: v3.1.0
kind: DataContract
id: sales
version: 1.0.0
status: {status}
schema:
  - name: sales
    properties:
"""
    text += indent(dedent(properties).strip() + "\n", " " * 6)
    if quality:
        text += "    quality:\n" + indent(dedent(quality).strip() + "\n", " " * 6)
    return text


def contract_folder(make_folder: MakeFolder, text: str, **keys: Any) -> Folder:
    """Return a project whose pipeline has a contract. Its source is CSV files, unless keys say otherwise."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(contract=FILE, **keys)})
    folder.write(FILE, text)
    return folder


def change_contract(folder: Folder, old: str, new: str) -> None:
    """Replace a part of the contract."""
    path = folder.path / FILE
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
