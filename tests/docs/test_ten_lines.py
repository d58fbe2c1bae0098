"""A newcomer points Esker at SeaweedFS with the ten lines of the page, and rows arrive."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import esker
from tests.servers.seaweedfs import KEY, SeaweedFS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "the-catalog-you-have.md"


def block(language: str) -> str:
    """Return the first block of a language in the page's section on SeaweedFS."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## SeaweedFS\n")[2].partition("\n## ")[0]
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found.group(1)


@pytest.mark.spark
@pytest.mark.server
def test_the_ten_lines_are_enough(seaweedfs: SeaweedFS, spark_running: None, tmp_path: Path) -> None:
    """Taken from the page as they stand; only the ports are those of the test's own server."""
    text = block("yaml")
    assert len(text.splitlines()) == 10
    for usual, port in ((8181, seaweedfs.rest_port), (8333, seaweedfs.s3_port)):
        assert f":{usual}" in text, "the server's usual port"
        text = text.replace(f":{usual}", f":{port}")
    (tmp_path / "esker.yml").write_text(text)
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.csv").write_text("id,name\n1,agate\n2,basalt\n")
    done = esker.open(tmp_path).run("orders")
    assert (done.status, done.rows.inserted) == ("succeeded", 2)
    rows = seaweedfs.pyiceberg("s3://lake").load_table("shop.orders").scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["name"]) for row in rows) == [(1, "agate"), (2, "basalt")]


@pytest.mark.server
def test_the_server_is_that_of_the_page(seaweedfs: SeaweedFS) -> None:
    """What the page starts is what the tests start, but for ports and folders; so are the variables."""
    words = shlex.split(block("sh").splitlines()[-1])
    assert words[:4] == ["AWS_ACCESS_KEY_ID=esker", "AWS_SECRET_ACCESS_KEY=…", "weed", "mini"]
    others = [word for word in words[4:] if word not in seaweedfs.command]
    assert [word.partition("=")[0] for word in others] == ["-dir"]
    assert seaweedfs.environment["CATALOG_CREDENTIAL"] == f"{KEY}:{seaweedfs.environment['S3_SECRET']}"
