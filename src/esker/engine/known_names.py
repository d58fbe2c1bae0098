"""Ask Java once for what the names of PySpark's classes mean.

Py4J asks each time. For a name without its package (`PythonUtils`) Java then looks into every jar: a run
that builds some hundred columns spent a tenth of its time there.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember
from pyspark import SparkContext

_NAMES = {
    "PythonUtils": "org.apache.spark.api.python.PythonUtils",
    "PythonSQLUtils": "org.apache.spark.sql.api.python.PythonSQLUtils",
    "functions": "org.apache.spark.sql.functions",
    "org.apache.spark.sql.functions": "org.apache.spark.sql.functions",
}
"""What PySpark writes, and the class that it means."""


class _Known(JavaClass):  # type: ignore[misc]
    """A class whose methods are looked up once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


def know_names(context: SparkContext) -> None:
    """From now on, PySpark in this process finds these classes without asking Java."""
    jvm: Any = context._jvm
    for name, full in _NAMES.items():
        # Here, instead of in a class of PySpark's: Python asks Py4J only for what an object does not have.
        vars(jvm).setdefault(name, _Known(full, jvm._gateway_client))
