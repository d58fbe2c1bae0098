"""Files of modes in which a batch takes the place of what is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.folder import Folder

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "keys",
    [
        {"mode": "replace_partitions", "partition_by": ["day"]},
        {"mode": "delete_insert", "key": ["day"]},
    ],
)
def test_files_of_a_partition_are_one_batch(make_folder: Callable[..., Folder], keys: dict[str, Any]) -> None:
    """However many there are: the last batch would be all that is left of it."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(**keys)})
    for number in range(3):
        folder.write_csv(f"landing/{number}.csv", ["day", "id"], [["1", str(number)]])
    opened = folder.open()
    # As if the default were so small: it is not declared.
    opened.project.pipeline("sales").source.__dict__["max_files"] = 1
    assert opened.run("sales").rows.inserted == 3
    assert sorted(folder.rows("shop.sales", "id")) == [(0,), (1,), (2,)]


def test_files_that_are_to_follow_each_other(make_folder: Callable[..., Folder]) -> None:
    """Who writes max_files: 1 wants each file to replace what came before it."""
    pipeline = Folder.files_pipeline(source={"max_files": 1}, mode="replace_partitions", partition_by=["day"])
    folder = make_folder(pipelines={"sales": pipeline})
    for number in range(2):
        folder.write_csv(f"landing/{number}.csv", ["day", "id"], [["1", str(number)]])
    folder.run()
    assert folder.rows("shop.sales", "id") == [(1,)]
