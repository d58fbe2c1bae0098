"""One Spark serves several projects of a process, each with catalogs of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from esker.engine import session
from esker.engine.catalogs.binding import Binding
from esker.errors import JarNotLoaded, KeysOfAnother, SecretOnCommandLine
from esker.project import load_project
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


def test_keys_that_a_client_takes_from_the_process(folder: Folder) -> None:
    """A second project in one process, with other keys, is refused before it reads as the first one."""
    engine = folder.open().engine
    engine._tell_java(_told_java("one"))
    engine._tell_java(_told_java("one"))
    with pytest.raises(KeysOfAnother):
        engine._tell_java(_told_java("two"))


def _told_java(value: str) -> Binding:
    return Binding({}, (), "", java={"esker.test.key": value})


def test_a_secret_among_the_options_of_java(
    make_folder: Callable[..., Folder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command line can be read by everybody on the machine: Java is not started with it."""
    monkeypatch.setenv("SHOP_TOKEN", "opensesame-of-java")
    conf = {"spark.driver.extraJavaOptions": "-Dtoken=${SHOP_TOKEN}"}
    folder = make_folder(spark={"conf": conf})
    with pytest.raises(SecretOnCommandLine):
        session._start_context(load_project(folder.path))
