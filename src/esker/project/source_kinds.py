"""All kinds of source, told apart by `type`. Other packages offer theirs by an entry point."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from esker.project.plugged_in import plugged_in
from esker.project.sources import (
    DltSource,
    FilesSource,
    HttpSource,
    JdbcSource,
    OaiPmhSource,
    PluggedInSource,
    PythonSource,
    QuerySource,
    SourceDeclaration,
    TableSource,
)

GROUP = "esker.sources"
BUILT_IN: tuple[type[SourceDeclaration], ...] = (
    DltSource,
    FilesSource,
    HttpSource,
    JdbcSource,
    OaiPmhSource,
    PythonSource,
    QuerySource,
    TableSource,
)


if TYPE_CHECKING:
    Source = SourceDeclaration
else:
    _OFFERED = plugged_in(GROUP, "source", SourceDeclaration, PluggedInSource, BUILT_IN)
    Source = Annotated[reduce(or_, (*BUILT_IN, *_OFFERED)), Field(discriminator="type")]
