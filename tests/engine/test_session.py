"""One Spark serves several projects of a process, each with catalogs of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from esker.engine import session
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


def test_project_that_needs_a_jar_that_was_not_loaded(
    make_folder: Callable[..., Folder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java loads jars when it starts: a later project that needs another one is told so."""
    # The tests load all jars that there are.
    monkeypatch.setattr(session, "needed_jars", lambda project: ["iceberg", "another"])
    with pytest.raises(JarNotLoaded, match="another"):
        _ = make_folder().open().engine
