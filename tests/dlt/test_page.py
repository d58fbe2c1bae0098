"""The examples on the page about dlt work."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest

import esker
from tests.docs.test_code_blocks import ROOT, blocks

pytestmark = pytest.mark.spark


def test_the_examples_of_the_page(
    tmp_path: Path, spark_running: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DLT_DATA_DIR", str(tmp_path / "dlt"))
    for block in blocks(ROOT / "docs/how-to/use-with-dlt.md"):
        if block.language == "yaml":
            (tmp_path / "esker.yml").write_text(block.text, encoding="utf-8")
        elif block.language == "python" and block.text.startswith("# sources/"):
            target = tmp_path / block.text.splitlines()[0].removeprefix("# ")
            target.parent.mkdir(exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            script = tmp_path / "example.py"
            script.write_text(block.text, encoding="utf-8")
            run_path(str(script), run_name="example")
    project = esker.open(tmp_path)
    assert project.run("issues").rows.inserted == 2
    assert project.run("issues").rows.read == 0
    labels = [row.labels for row in project.table("raw.issues").orderBy("number").collect()]
    assert [[label.name for label in each] for each in labels] == [["bug"], []]
