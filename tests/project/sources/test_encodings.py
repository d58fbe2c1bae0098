"""Every character set that Esker offers is known to Java."""

from __future__ import annotations

import codecs

import pytest

from esker.project.sources import encodings
from tests.folder import Folder


def test_names_are_those_that_python_answers() -> None:
    """The table is looked up with Python's own names."""
    for name in encodings._JAVA_NAMES:
        assert codecs.lookup(name).name == name


@pytest.mark.spark
def test_java_knows_every_encoding(folder: Folder) -> None:
    """None is accepted by `esker check` and refused by the run."""
    jvm = folder.open().engine.spark._jvm
    assert jvm is not None
    known = jvm.java.nio.charset.Charset
    assert [name for name in encodings._JAVA_NAMES.values() if not known.isSupported(name)] == []
