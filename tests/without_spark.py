"""Programs that run where PySpark, and what loads beside it, are not installed."""

from __future__ import annotations

TAKEN_AWAY = """
import importlib.util, sys

AWAY = ("pyspark", "py4j", "duckdb")

class TakenAway:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in AWAY:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, TakenAway())
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name.partition(".")[0] in AWAY else found(name, *more)
"""
WITHOUT_JAVA = {"PATH": "", "JAVA_HOME": None, "SPARK_HOME": None}
"""Changes of the environment that leave no Java to start."""
