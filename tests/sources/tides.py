"""The kind of source that docs/how-to/write-a-source.md shows, installed as pip leaves a package."""

from __future__ import annotations

from pathlib import Path

from tests.docs.test_code_blocks import ROOT, blocks

PAGE = ROOT / "docs/how-to/write-a-source.md"


def page_of_tides() -> str:
    """Return the file as the page has it."""
    [found] = [block.text for block in blocks(PAGE) if block.text.startswith("# tides.py\n")]
    return found


def offer(site: Path, module: str) -> None:
    """Install a package that offers the kind."""
    site.mkdir(parents=True, exist_ok=True)
    (site / "tides.py").write_text(module, encoding="utf-8")
    info = site / "tides-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tides\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[esker.sources]\ntides = tides:Tides\n")
