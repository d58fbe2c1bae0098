"""Pointers of every kind of catalog. A new kind is one file here."""

from esker.engine.iceberg.pointers.glue import GluePointers
from esker.engine.iceberg.pointers.hadoop import HadoopPointers
from esker.engine.iceberg.pointers.hive import HivePointers
from esker.engine.iceberg.pointers.jdbc import JdbcPointers
from esker.engine.iceberg.pointers.nessie import NessiePointers
from esker.engine.iceberg.pointers.pointer import NextFile, NotServed, Pointer, PointerMoved, Pointers
from esker.engine.iceberg.pointers.rest import RestPointers
from esker.engine.session import Engine

_KINDS: dict[str, type[Pointers]] = {
    "jdbc": JdbcPointers,
    "rest": RestPointers,
    "glue": GluePointers,
    "hive": HivePointers,
    "nessie": NessiePointers,
    "hadoop": HadoopPointers,
}


def pointers_of(engine: Engine, catalog: str) -> Pointers:
    """Return the pointers of one of the project's catalogs."""
    return _KINDS[engine.bindings[catalog].settings["type"]](engine, catalog)


__all__ = ["NextFile", "NotServed", "Pointer", "PointerMoved", "Pointers", "pointers_of"]
