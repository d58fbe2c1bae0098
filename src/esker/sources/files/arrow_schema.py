"""Look through the columns of a file, as Arrow sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from esker.sources.files.found import FoundFile
from esker.sources.files.typed import refuse_twins


def check_names(file: FoundFile, fields: Iterable[pa.Field], prefix: str = "") -> None:
    """Raise ColumnRefused for names that differ in case only, however deep."""
    present = list(fields)
    refuse_twins(file, (field.name for field in present), prefix)
    for field in present:
        if pa.types.is_struct(field.type):
            check_names(file, field.type, f"{prefix}{field.name}.")


def leaves(fields: Iterable[pa.Field], prefix: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """Return the columns that hold values, however deep."""
    for field in fields:
        name, kind = f"{prefix}{field.name}", field.type
        if pa.types.is_struct(kind):
            yield from leaves(kind, f"{name}.")
        elif pa.types.is_map(kind):
            yield from leaves([kind.key_field, kind.item_field], f"{name}.")
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            yield from leaves([kind.value_field], f"{name}.")
        else:
            yield name, kind
