"""One state of a table, and what is built on it, in few calls to Java.

Each call through Py4J takes as long as reading a small file. A class of Esker's own, `TableState.java` beside
this file, answers with one text what took thirty calls, and builds a commit in two. It comes compiled: to
compile it takes as long as to load a small batch.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

from esker.engine.iceberg.java import java_class

_PACKAGE = "esker"
FOLDER = "java_classes"
PACKAGE_FOLDER = "esker.engine.iceberg"
"""Where the classes and their source are."""
_CLASSES = ("TableState", "TableState$Opener")
_CLASS_LOADER = "org.codehaus.commons.compiler.util.reflect.ByteArrayClassLoader"
"""Of Spark's own compiler: loads classes that are here as bytes."""


def opener(jvm: Any) -> Any:
    """Return the Java object that opens tables."""
    return _loaded(jvm)


@lru_cache(maxsize=8)
def _loaded(jvm: Any) -> Any:
    classes = java_class(jvm, "java.util.HashMap")()
    for name in _CLASSES:
        classes.put(f"{_PACKAGE}.{name}", shipped(name))
    # A loader below the one that Iceberg came through: with a platform's Spark that is not Java's own.
    own = java_class(jvm, _CLASS_LOADER)(classes, _loader(jvm))
    return own.loadClass(f"{_PACKAGE}.TableState$Opener").newInstance()


def shipped(name: str) -> bytes:
    """Return a class as it comes with Esker."""
    return files(PACKAGE_FOLDER).joinpath(FOLDER, f"{name}.class").read_bytes()


def compiled(jvm: Any) -> dict[str, bytes]:
    """Compile the classes from their source with Spark's own compiler; return them by name."""
    compiler = java_class(jvm, "org.codehaus.janino.SimpleCompiler")()
    compiler.setParentClassLoader(_loader(jvm))
    compiler.cook(files(PACKAGE_FOLDER).joinpath(FOLDER, "TableState.java").read_text(encoding="utf-8"))
    made = compiler.getBytecodes()
    return {name: bytes(made.get(f"{_PACKAGE}.{name}")) for name in _CLASSES}


def _loader(jvm: Any) -> Any:
    return java_class(jvm, "org.apache.iceberg.Table")._java_lang_class.getClassLoader()
