"""A short program that opens a catalog with PyIceberg."""

from __future__ import annotations

from pydantic import SecretStr

from esker.pipeline.export.program import code, expression
from esker.pipeline.export.reader import Exported, Lake, Settings
from esker.project.stores import AzureStore
from esker.reading.settings import Address, Setting, Unsuited, settings_of

_EXTRAS = {"sqlite": "sql-sqlite", "jdbc": "sql-postgres", "glue": "glue", "hive": "hive", "s3tables": "glue"}


def export(lake: Lake) -> Exported:
    """Return the program. Raises CannotExport."""
    settings = Settings.empty("${{{}}}")
    opened = catalog_code(lake, settings)
    namespace, table = lake.example
    files = "adlfs" if isinstance(lake.store, AzureStore) else None
    extras = ",".join(filter(None, ("pyarrow", files, _EXTRAS.get(lake.catalog.type))))
    text = code(
        f'"""Read tables of the catalog "{lake.name}".',
        "",
        f'pip install "pyiceberg[{extras}]"',
        '"""',
        "",
        "import os",
        "from urllib.parse import quote" if "quote(" in opened else None,
        "",
        "from pyiceberg.catalog import load_catalog",
        "",
        opened,
        f"table = catalog.load_table({f'{namespace}.{table}'!r})",
        "print(table.scan(limit=10).to_arrow().to_pylist())",
    )
    return Exported(f"read_{lake.name}.py", text, tuple(settings.used))


def catalog_code(lake: Lake, settings: Settings) -> str:
    """Return the lines that open the catalog. Raises CannotExport."""
    try:
        told = settings_of(lake.project, lake.catalog)
    except Unsuited as error:
        raise lake.refused(str(error)) from None
    lines = "".join(f"        {name!r}: {_as_code(value, settings)},\n" for name, value in told.items())
    return f"catalog = load_catalog(\n    {lake.name!r},\n    **{{\n{lines}    }},\n)"


def _as_code(setting: Setting, settings: Settings) -> str:
    """Return code for a setting, with variables in place of secrets."""
    match setting:
        case str():
            return repr(setting)
        case SecretStr():
            return expression(settings.secret(setting))
        case Address():
            password = f'quote({expression(settings.secret(setting.password))}, safe="")'
            return f"{setting.before!r} + {password} + {setting.after!r}"
        case _:
            inner = ", ".join(f"{name!r}: {_as_code(value, settings)}" for name, value in setting.items())
            return f"{{{inner}}}"
