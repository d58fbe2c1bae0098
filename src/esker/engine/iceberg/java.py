"""Java collections as Python values.

Py4J's own iteration ends with a Java exception, which PySpark then examines class by class: 45 ms for
every loop. Asking `hasNext` costs a fraction of a millisecond.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaMember
from py4j.protocol import STATIC_PREFIX


@lru_cache(maxsize=256)
def java_class(jvm: Any, name: str) -> Any:
    """Return a Java class. Py4J would ask the JVM about every part of the name, each time."""
    found = jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found


def static_method(jvm: Any, class_name: str, method: str) -> Any:
    """Return a static method that shares its name with others.

    Py4J looks at one of them, whichever Java names first, and says that there is none if that is not static.
    """
    client = java_class(jvm, class_name)._gateway_client
    return JavaMember(method, None, STATIC_PREFIX + class_name, client)


def iceberg(jvm: Any, name: str) -> Any:
    """Return a class of Iceberg's: `iceberg(jvm, "DataFiles")`."""
    return java_class(jvm, f"org.apache.iceberg.{name}")


def each(iterable: Any) -> Iterator[Any]:
    """Yield the items of a Java iterable."""
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()


def text_map(jvm: Any, mapping: Any) -> dict[str, str]:
    """Return a Java map of texts, in one call."""
    found: dict[str, str] = json.loads(_mapper(jvm).writeValueAsString(mapping))
    return found


def text_list(jvm: Any, texts: Sequence[str]) -> Any:
    """Return texts as a Java list, in one call."""
    return _mapper(jvm).readValue(json.dumps(texts), java_class(jvm, "java.util.ArrayList")._java_lang_class)


def json_node(jvm: Any, document: Any) -> Any:
    """Return a JSON document as Iceberg's parsers take it."""
    return _mapper(jvm).readTree(json.dumps(document))


@lru_cache(maxsize=8)
def _mapper(jvm: Any) -> Any:
    mapper = iceberg(jvm, "shaded.com.fasterxml.jackson.databind.ObjectMapper")()
    features = iceberg(jvm, "shaded.com.fasterxml.jackson.core.JsonParser$Feature")
    # Partitions may be NaN or infinite, which JSON proper does not have, and Python writes.
    return mapper.configure(features.ALLOW_NON_NUMERIC_NUMBERS, True)


@lru_cache(maxsize=8)
def in_this_thread(jvm: Any) -> Any:
    """Return an executor that does at once what it is given.

    Iceberg looks every 10 ms whether its threads are done, and pauses so several times in a commit. On a
    local disk all of a commit's manifests take less than one pause.
    """
    return iceberg(
        jvm, "relocated.com.google.common.util.concurrent.MoreExecutors"
    ).newDirectExecutorService()
