"""One Spark serves several projects of a process, each with catalogs of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from esker.errors import JarNotLoaded
from tests.folder import Folder

pytestmark = pytest.mark.spark


def test_projects_in_one_process_do_not_see_each_other(make_folder: Callable[..., Folder]) -> None:
    """Two projects with a catalog of the same name have tables of their own."""
    first, second = make_folder("first"), make_folder("second")
    for folder, number in ((first, 1), (second, 2)):
        folder.write_csv("landing/a.csv", ["id"], [(number,)])
        folder.run()
    assert (first.rows(), second.rows()) == ([(1,)], [(2,)])


def test_project_that_needs_a_jar_that_was_not_loaded(make_folder: Callable[..., Folder]) -> None:
    """Java loads jars when it starts: a later project that needs another one is told so."""
    catalog = {"type": "jdbc", "url": "jdbc:postgresql://127.0.0.1:1/none", "warehouse": "warehouse"}
    folder = make_folder(catalog=catalog)
    with pytest.raises(JarNotLoaded, match="postgresql"):
        _ = folder.open().engine
