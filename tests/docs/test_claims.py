"""What the README and the guides say of other products is what was tried with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_TRIED = ("Polaris", "Lakekeeper", "Unity", "BigLake", "Athena", "Redshift", "Snowflake")
"""No server of these, and nothing that stands in for one, is started by any test."""
HEDGES = ("not tried", "by their documentation")


def cells(page: str) -> list[str]:
    """Return the cells of tables in a page that list what Esker works with."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    return [cell for line in lines if line.startswith("|") for cell in re.split(r"(?<!\\)\|", line)]


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/the-catalog-you-have.md"])
@pytest.mark.parametrize("product", NOT_TRIED)
def test_what_was_not_tried_says_so(page: str, product: str) -> None:
    """A product that no test meets stands in no list without these words."""
    assert not list((ROOT / "tests" / "servers").glob(f"*{product.lower()}*")), "it is tried: say so"
    bare = [cell for cell in cells(page) if product in cell and not any(hedge in cell for hedge in HEDGES)]
    assert bare == []


def test_which_mysql_was_tried_is_said() -> None:
    """Of MySQL's own, the tests have one version; its protocol is tried on MariaDB."""
    for page in ("README.md", "docs/how-to/load-from-a-database.md"):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        assert re.search(r"MySQL.{0,60} 5\.6[,;] later versions( of MySQL are)? not tried", text), page


def test_which_clusters_were_tried_is_said() -> None:
    """The tests start a standalone cluster; no other kind of master is met by any of them."""
    for page in ("README.md", "docs/how-to/run-on-a-cluster.md"):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        assert re.search(r"standalone.{0,30}YARN and Kubernetes( are)? not tried", text), page
